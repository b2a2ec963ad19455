// SPDX-License-Identifier: BSL-1.0
// Takes this thread to another of the cores that it may use. Used by transport/patience.hpp, where two ranks were left on
// one core while another is idle.
#pragma once

#include <sched.h>

namespace cohort::detail {

/// Goes to the `steps`-th next core that this thread may use; afterwards it may use the same as before. Nothing happens
/// where it may use one only, or the kernel does not say.
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
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(to, &only);
  if (::sched_setaffinity(0, sizeof only, &only) == 0) (void)::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace cohort::detail
