// SPDX-License-Identifier: BSL-1.0
// A cache line that will be written soon, and that another core has read since: fetched while there is time, so that the
// write need not wait for it. Used by transport/shm/.
#pragma once

namespace cohort::detail {

inline void fetch_line_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  // By name: of a builtin a compiler may make a prefetch for reading. Cores without it take it for a no-op.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace cohort::detail
