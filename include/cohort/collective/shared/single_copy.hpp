// SPDX-License-Identifier: BSL-1.0
// One step of the window in which what a rank gives is not put there, but read by the others out of its memory, where the kernel
// lets them: copied once instead of twice. Used by move.hpp.
#pragma once

#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/shared/lent.hpp>
#include <cohort/collective/shared/window_move.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/shm/window_use.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cohort::collective {

namespace detail {

/// What a rank says beside its word, behind what the judge of a timed_passage does.
struct single_copy_words {
  std::uint64_t address = 0;  ///< of what it gives; 0: nothing that can be read
  std::uint64_t refused = 0;  ///< said with the second half of the step: it could not read what is for it
};
inline constexpr std::size_t single_copy_place = 16;
static_assert(single_copy_place + sizeof(single_copy_words) <= transport::shm_window::inline_bytes);

inline void tell(const transport::window_step& use, const single_copy_words& own) noexcept {
  std::memcpy(use.short_data(use.rank()) + single_copy_place, &own, sizeof own);
}
[[nodiscard]] inline single_copy_words told(const transport::window_step& use, int rank) noexcept {
  single_copy_words theirs;
  std::memcpy(&theirs, use.short_data(rank) + single_copy_place, sizeof theirs);
  return theirs;
}

/// Where what this rank gives lies in one piece, its blocks one behind the other; 0 if it does not.
[[nodiscard]] inline std::uint64_t address_given(const window_move& m, int ranks) noexcept {
  const int blocks = m.in_by_rank ? ranks : 1;
  const transport::piece given = m.in.together(m.in_by_rank ? 0 : m.in_block, blocks);
  if (given.data == nullptr || given.bytes != m.longest * static_cast<std::size_t>(blocks)) return 0;
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(given.data));
}

/// What rank `from` has for this one, whose memory begins there. False: it cannot be read.
[[nodiscard]] inline bool read_block(const window_move& m, transport::window_use& use, int from,
                                     std::uint64_t address) {
  const transport::piece into = m.out.together(m.out_by_rank ? from : 0, 1);
  if (address == 0 || into.data == nullptr || into.bytes != m.longest) return false;
  if (m.in_by_rank) address += static_cast<std::uint64_t>(use.rank()) * m.longest;
  const transport::piece source{reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)), m.longest};
  return use.transport().read_memory_of(use.current().home().world_rank(from), source, into);
}

}  // namespace detail

/// Carries a move out that way.
///
/// Needs:  every rank gives and takes blocks of `m.longest` bytes; `use` is announced, and nothing of it has been raised for the
///         step under way
/// Result: false, on every rank, if one could not read: what is for some may be there, and the step has ended
template <class Use = transport::window_use>
task<bool> move_by_single_copy(Use& use, const window_move& m) {
  const int p = use.size();
  detail::single_copy_words own;
  own.address = detail::address_given(m, p);
  detail::tell(use, own);
  detail::lent_buffers buffers(use, [] {});
  buffers.lend();
  use.raise();
  m.copy_own(use.rank(), 0, m.longest);
  for (int k = 1; k < p; ++k) {
    const int from = use.other(k);
    co_await use.arrived(from);
    if (own.refused == 0 && !detail::read_block(m, use, from, detail::told(use, from).address)) own.refused = 1;
  }
  for (int k = 1; k < p; ++k) co_await use.stands_by(use.other(k));
  detail::tell(use, own);
  use.raise_second();
  bool all_read = own.refused == 0;
  for (int k = 1; k < p; ++k) {
    co_await use.second_of(use.other(k));
    all_read = all_read && detail::told(use, use.other(k)).refused == 0;
  }
  buffers.are_back();
  use.end_step();
  co_return all_read;
}

}  // namespace cohort::collective
