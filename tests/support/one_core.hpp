// SPDX-License-Identifier: BSL-1.0
// A process that has the first of its cores alone from here on.
#pragma once

#include <sched.h>

#include <stdexcept>

namespace harness {

inline void on_first_core_only() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) throw std::runtime_error("sched_getaffinity failed");
  int first = 0;
  while (!CPU_ISSET(first, &mine)) ++first;
  CPU_ZERO(&mine);
  CPU_SET(first, &mine);
  if (::sched_setaffinity(0, sizeof mine, &mine) != 0) throw std::runtime_error("sched_setaffinity failed");
}

}  // namespace harness
