// SPDX-License-Identifier: BSL-1.0
// How a thread waits for what another party writes into memory that it can read: it looks again and again, at first without
// a pause, then giving its core away in between, and not for ever. Used where a thread waits for a device, whose writes
// wake nobody.
#pragma once

#include <chrono>

#include <sched.h>

namespace cohort::detail {

/// To sleep costs some 60 us at the end of the wait: after that long it is a thousandth of it.
inline constexpr std::chrono::milliseconds close_watch{50};

/// Calls `seen` until it is true or `until` has come.
///
/// Result: what `seen` returned last
template <class Seen>
bool watch_closely(std::chrono::steady_clock::time_point until, Seen seen) {
  constexpr std::chrono::microseconds without_pause{20};
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    if (seen()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now > until) return false;
    if (now - begin > without_pause) ::sched_yield();
  }
}

}  // namespace cohort::detail
