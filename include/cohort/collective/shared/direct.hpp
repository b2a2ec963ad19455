// SPDX-License-Identifier: BSL-1.0
// Which buffers of an operation the other ranks can reach where they are, and the kernel that uses them: every input
// is read once, every output written once. Used by reduce.hpp of this folder.
#pragma once

#include <cohort/collective/shared/copy.hpp>
#include <cohort/transport/shm/regions.hpp>
#include <cohort/transport/shm/window_use.hpp>

#include <algorithm>
#include <cstdint>
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

/// How combine_everywhere cuts its bytes: blocks that stay in the first-level cache between their being made and their last
/// copy. The shorter, the more of what is read for the next is on its way meanwhile, if it comes from afar.
struct blocks {
  std::size_t first;  ///< shorter, so that the others begin with a line of every output
  std::size_t each;

  static constexpr std::size_t longest = direct_element_bytes;
  static constexpr std::size_t from_afar = 1024;
  static constexpr std::size_t afar_bytes = std::size_t{512} << 10;

  blocks(std::size_t element_bytes, std::size_t bytes, reachable_buffers& to, int ranks, int root, std::size_t from,
         bool streaming) noexcept {
    // A line that is streamed in two parts is written twice.
    constexpr std::size_t line = cohort::detail::stream_line;
    const auto into_line = [&](int k) { return reinterpret_cast<std::uintptr_t>(to.out(k) + from) % line; };
    const std::size_t lead = (line - into_line(std::max(root, 0))) % line;
    bool lines = streaming && cohort::detail::stream_block % element_bytes == 0 && lead % element_bytes == 0;
    for (int k = 1; root < 0 && k < ranks; ++k) lines = lines && into_line(k) == into_line(0);
    const bool afar = !streaming && bytes >= afar_bytes;
    each = lines ? cohort::detail::stream_block
                 : whole_elements(afar ? std::max(from_afar, element_bytes) : longest, element_bytes);
    first = lines && lead > 0 ? lead : each;
  }
};

}  // namespace detail

/// Combines bytes [from, from + bytes) of all inputs and writes the result to every output, with op's last step done.
inline void combine_everywhere(const cohort::detail::reducer& op, reachable_buffers& all, int ranks, int root, int own,
                               std::size_t from, std::size_t bytes, bool streaming) {
  const detail::blocks cut(op.element_bytes, bytes, all, ranks, root, from, streaming);
  alignas(64) std::byte block[detail::blocks::longest];
  operands sources(ranks);
  std::size_t here = std::min(cut.first, bytes);
  for (std::size_t at = from; at < from + bytes; at += here, here = std::min(cut.each, from + bytes - at)) {
    const std::size_t count = here / op.element_bytes;
    sources.set([&](int k) { return all.in(k) + at; });
    op.fold_many(op.op, block, sources.data(), ranks, count, false);
    if (op.finish != nullptr) op.finish(op.op, block, block, count, ranks);
    for (int i = 0; i < ranks; ++i) {
      const int k = (own + i) % ranks;
      if (root >= 0 && root != k) continue;
      if (streaming) {
        cohort::detail::stream_copy(all.out(k) + at, block, here);
      } else {
        std::memcpy(all.out(k) + at, block, here);
      }
    }
  }
  if (streaming) cohort::detail::stream_fence();
}

}  // namespace cohort::collective
