// SPDX-License-Identifier: BSL-1.0
// A named range on the timeline of NVIDIA's profilers for every call on a device. With COHORT_NVTX defined, for the whole
// program, and NVTX's headers at hand (they come with CUDA); nothing at all else.
#pragma once

#if defined(COHORT_NVTX)
#if !__has_include(<nvtx3/nvToolsExt.h>)
#error "COHORT_NVTX is defined, and there is no <nvtx3/nvToolsExt.h>: it comes with the CUDA toolkit"
#endif
#include <nvtx3/nvToolsExt.h>
#endif

namespace cohort::detail {

class profile_range {
 public:
#if defined(COHORT_NVTX)
  explicit profile_range(const char* name) noexcept { nvtxRangePushA(name); }
  ~profile_range() { nvtxRangePop(); }
#else
  explicit constexpr profile_range(const char* /*name*/) noexcept {}
#endif
  profile_range(const profile_range&) = delete;
  profile_range& operator=(const profile_range&) = delete;
};

}  // namespace cohort::detail
