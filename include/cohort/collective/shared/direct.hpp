// SPDX-License-Identifier: BSL-1.0
// Which buffers of an operation the other ranks can reach where they are, and the kernel that uses them: every input
// is read once, every output written once. Used by reduce.hpp of this folder.
#pragma once

#include <cohort/collective/shared/copy.hpp>
#include <cohort/transport/shm/regions.hpp>
#include <cohort/transport/shm/window_use.hpp>

#include <algorithm>
#include <cstring>

namespace cohort::collective {

/// Longer elements are not combined in place.
inline constexpr std::size_t direct_element_bytes = 4096;
/// The ends of a buffer, which may not be reachable, are copied: less than a page, up to the next whole element.
inline constexpr std::size_t direct_end_bytes = transport::shared_segment::page + direct_element_bytes;

namespace detail {

[[nodiscard]] inline bool all_but_ends(const transport::region_place& p, std::size_t bytes) noexcept {
  constexpr std::size_t page = transport::shared_segment::page;
  return p.number != 0 && p.skip < page && p.length <= bytes - p.skip && bytes - p.skip - p.length < page;
}

/// What all ranks can reach of the buffers of all: bytes [from, to).
struct common_range {
  std::size_t from = 0;
  std::size_t to;
  std::size_t element_bytes;
  void take(const transport::region_place& p) noexcept {
    const auto skip = static_cast<std::size_t>(p.skip);
    const auto end = skip + static_cast<std::size_t>(p.length);
    from = std::max(from, (skip + element_bytes - 1) / element_bytes * element_bytes);
    to = std::min(to, end / element_bytes * element_bytes);
  }
};

}  // namespace detail

/// What a rank says of its buffers when it enters an operation on long vectors.
struct offered_buffers {
  transport::region_place in{};
  transport::region_place out{};
  /// Whether all that the operation needs of this rank can be reached, all but the ends of its buffers of `bytes`
  /// bytes. Every rank comes to the same answer: it follows from what was told.
  [[nodiscard]] bool complete(std::size_t bytes) const noexcept {
    return detail::all_but_ends(in, bytes) && detail::all_but_ends(out, bytes);
  }
  void narrow(detail::common_range& reach) const noexcept {
    reach.take(in);
    reach.take(out);
  }
};
static_assert(sizeof(offered_buffers) <= transport::shm_window::inline_bytes);

namespace detail {

/// A block in one piece: where it lies.
[[nodiscard]] inline std::byte* one_piece(const layout& block, std::size_t bytes) {
  std::byte* only = nullptr;
  int pieces = 0;
  block.each_piece(0, 1, [&](std::byte* data, std::size_t n) {
    ++pieces;
    only = n == bytes ? data : nullptr;
  });
  return pieces == 1 ? only : nullptr;
}

[[nodiscard]] inline transport::region_place place_of_block(transport::window_use& use, const layout& block,
                                                            std::size_t bytes) {
  transport::regions* const known = use.transport().shared_buffers();
  if (known == nullptr || known->empty()) return {};
  const std::byte* const data = one_piece(block, bytes);
  return data == nullptr ? transport::region_place{} : known->find(data, bytes);
}

inline void tell_buffers(const transport::window_step& use, const offered_buffers& mine) noexcept {
  std::memcpy(use.short_data(use.rank()), &mine, sizeof mine);
}
[[nodiscard]] inline offered_buffers told_buffers(const transport::window_step& use, int rank) noexcept {
  offered_buffers theirs;
  std::memcpy(&theirs, use.short_data(rank), sizeof theirs);
  return theirs;
}

}  // namespace detail

/// The buffers of all ranks, in this process's addresses.
class reachable_buffers {
 public:
  explicit reachable_buffers(int ranks) : in_(static_cast<std::size_t>(ranks)), out_(static_cast<std::size_t>(ranks)) {}
  std::byte*& in(int k) noexcept { return in_[static_cast<std::size_t>(k)]; }
  std::byte*& out(int k) noexcept { return out_[static_cast<std::size_t>(k)]; }

 private:
  detail::short_vector<std::byte*> in_;
  detail::short_vector<std::byte*> out_;
};

namespace detail {

/// What is combined at a time where it stays in caches: it is in the first-level cache between its being made and its last
/// copy. The shorter, the more of what is read for the next is on its way meanwhile, if it comes from afar.
inline constexpr std::size_t longest_block = direct_element_bytes;
inline constexpr std::size_t block_from_afar = 1024;
inline constexpr std::size_t block_of_two_from_afar = 2048;
inline constexpr std::size_t afar_bytes = std::size_t{512} << 10;

[[nodiscard]] inline std::size_t block_bytes(std::size_t element_bytes, std::size_t bytes, int ranks) noexcept {
  const std::size_t shorter = ranks == 2 ? block_of_two_from_afar : block_from_afar;
  return whole_elements(bytes < afar_bytes ? longest_block : std::max(shorter, element_bytes), element_bytes);
}

}  // namespace detail

/// Combines bytes [from, from + bytes) of all inputs and writes the result to every output, with op's last step done.
inline void combine_everywhere(const cohort::detail::reducer& op, reachable_buffers& all, int ranks, int root, int own,
                               std::size_t from, std::size_t bytes, bool streaming) {
  // No two ranks begin at the same place.
  const int places = root < 0 ? ranks : 1;
  const auto place = [&](int i) { return all.out(root < 0 ? (own + i) % ranks : root) + from; };
  operands sources(ranks);
  if (streaming) {
    detail::short_vector<std::byte*> to(static_cast<std::size_t>(places));
    for (int i = 0; i < places; ++i) to[static_cast<std::size_t>(i)] = place(i);
    sources.set([&](int k) { return all.in(k) + from; });
    op.fold_past_caches(op.op, to, {sources.data(), static_cast<std::size_t>(ranks)}, bytes / op.element_bytes,
                        op.finish, ranks);
    return;
  }
  alignas(64) std::byte block[detail::longest_block];
  const std::size_t each = detail::block_bytes(op.element_bytes, bytes, ranks);
  std::size_t here = 0;
  for (std::size_t at = 0; at < bytes; at += here) {
    here = std::min(each, bytes - at);
    const std::size_t count = here / op.element_bytes;
    sources.set([&](int k) { return all.in(k) + from + at; });
    op.fold_many(op.op, block, sources.data(), ranks, count);
    if (op.finish != nullptr) op.finish(op.op, block, block, count, ranks);
    for (int i = 0; i < places; ++i) std::memcpy(place(i) + at, block, here);
  }
}

}  // namespace cohort::collective
