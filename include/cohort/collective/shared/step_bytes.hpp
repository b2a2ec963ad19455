// SPDX-License-Identifier: BSL-1.0
// How much of a long vector goes over in one step of a window. Used by move.hpp, reduce.hpp and combine.hpp of this folder.
#pragma once

#include <cohort/collective/body.hpp>

#include <algorithm>
#include <cstddef>

namespace cohort::collective {

/// Whether there are two ranks, each with a core to itself. Every rank comes to the same answer.
[[nodiscard]] inline bool two_on_cores(const group& g) noexcept { return g.size() == 2 && !g.crowded; }

/// A vector or a block that is as long as this begins to leave its writer's own cache before it is read.
inline constexpr std::size_t long_for_a_step = std::size_t{1} << 20;
/// Of long ones, between two ranks with a core each: what one of them gives, takes and writes in two steps stays in its own cache.
inline constexpr std::size_t short_step = std::size_t{128} << 10;
/// What several ranks give or combine at a time: they wait for each other at each step.
inline constexpr std::size_t common_step = std::size_t{256} << 10;
/// Where ranks take turns on cores, each step is a turn; and of what several read more has come, in longer ones, into the cache
/// that they share, which is nearer to them than another core's own.
inline constexpr std::size_t long_step = std::size_t{512} << 10;

/// Of what one rank gives to all: one half of a part is filled while the other half is read.
[[nodiscard]] constexpr std::size_t step_of_giver(std::size_t bytes, bool on_cores) noexcept {
  return bytes < long_for_a_step || on_cores ? short_step : long_step;
}
/// Of what one of two ranks takes: it copies its own block before, while the other one fills both halves.
[[nodiscard]] constexpr std::size_t step_of_taker(std::size_t bytes) noexcept { return step_of_giver(bytes, false); }
/// Of what two ranks give each other.
[[nodiscard]] constexpr std::size_t step_of_both(std::size_t bytes, bool on_cores) noexcept {
  return bytes < long_for_a_step || !on_cores ? common_step : short_step;
}
/// What one of two ranks is to combine goes over whole up to here,
inline constexpr std::size_t whole_for_one_bytes = std::size_t{64} << 10;
/// and what is longer in such steps.
[[nodiscard]] constexpr std::size_t step_for_one(std::size_t bytes, bool on_cores) noexcept {
  return bytes < long_for_a_step ? whole_for_one_bytes : step_of_giver(bytes, on_cores);
}
/// Of vectors that everybody combines: the parts of two steps, and what they are read from and written to, then stay in a rank's own
/// cache. Among more ranks than two a second step is waited for longer than that saves.
[[nodiscard]] constexpr std::size_t step_of_vectors(std::size_t bytes, std::size_t capacity, int ranks) noexcept {
  return ranks > 2 && bytes <= capacity ? capacity : std::min(capacity, common_step);
}

}  // namespace cohort::collective
