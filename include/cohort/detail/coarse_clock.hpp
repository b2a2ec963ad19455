// SPDX-License-Identifier: BSL-1.0
// The steady clock, read cheaply: a few milliseconds old, for deadlines of seconds. A reading of the exact clock costs
// as much as a message between two cores. Used by transport/call.hpp.
#pragma once

#include <chrono>

#include <time.h>

namespace cohort::detail {

/// What this clock lags behind at most, on every kernel that ticks at least a hundred times a second.
inline constexpr std::chrono::milliseconds coarse_lag{10};

[[nodiscard]] inline std::chrono::steady_clock::time_point coarse_now() noexcept {
#ifdef CLOCK_MONOTONIC_COARSE
  timespec t{};
  if (::clock_gettime(CLOCK_MONOTONIC_COARSE, &t) == 0) {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
#endif
  return std::chrono::steady_clock::now();
}

}  // namespace cohort::detail
