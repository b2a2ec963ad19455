// SPDX-License-Identifier: BSL-1.0
// Runs of bytes that one core writes and another reads, again and again. On some processors a line that the other core still has in
// its first-level cache comes, and is written to, half as fast as one that only its second-level cache has: what is too short to
// drive its own lines out of the first goes to another place each time, round a room that is larger than that. Used by window_step.hpp
// and ring_room.hpp of transport/shm/; on other processors lines are handed back (hand_back.hpp), or nothing is known.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace cohort::detail {

/// Whether this is such a processor.
[[nodiscard]] inline bool first_levels_pass_slowly() noexcept {
#if defined(__x86_64__)
  static const bool so = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") != 0;
  }();
  return so;
#else
  return false;
#endif
}

/// Two first-level caches and more.
inline constexpr std::size_t round_room = std::size_t{128} << 10;
/// Of fewer bytes it makes no difference, and what stands beside the words of a window is fewer; more drive out their own lines.
inline constexpr std::size_t shortest_round = std::size_t{4} << 10;
inline constexpr std::size_t longest_round = std::size_t{32} << 10;

/// Whether so many bytes go to another place each time.
[[nodiscard]] inline bool goes_round(std::size_t bytes) noexcept {
  return bytes >= shortest_round && bytes <= longest_round && first_levels_pass_slowly();
}
/// Where, the `turn`-th time.
///
/// Needs:  goes_round(bytes)
/// Result: so that they end within the room
[[nodiscard]] constexpr std::size_t place_in_round(std::uint32_t turn, std::size_t bytes) noexcept {
  return turn * std::bit_ceil(bytes) % round_room;
}

}  // namespace cohort::detail
