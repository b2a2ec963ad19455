// SPDX-License-Identifier: BSL-1.0
// Takes this thread to another of the cores that it may use. Used by transport/patience.hpp, where ranks were left on one
// core while another has fewer.
#pragma once

#include <sched.h>

namespace cohort::detail {

/// Goes to that core; afterwards this thread may use the same as before, which is `allowed`.
inline void go_to_core(int core, const cpu_set_t& allowed) noexcept {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  if (::sched_setaffinity(0, sizeof only, &only) == 0) (void)::sched_setaffinity(0, sizeof allowed, &allowed);
}

/// The same; nothing happens where this thread may not use it, or the kernel does not say.
inline void go_to_core(int core) noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_ISSET(core, &allowed)) go_to_core(core, allowed);
}

/// Goes to the `steps`-th next core that this thread may use. Nothing happens where it may use one only, or the kernel does
/// not say.
inline void go_to_other_core(int steps) noexcept {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int here = ::sched_getcpu();
  if (here < 0 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2) return;
  int to = here;
  for (int left = steps % (CPU_COUNT(&allowed) - 1) + 1; left > 0;) {
    to = (to + 1) % CPU_SETSIZE;
    if (to != here && CPU_ISSET(to, &allowed)) --left;
  }
  go_to_core(to, allowed);
}

}  // namespace cohort::detail
