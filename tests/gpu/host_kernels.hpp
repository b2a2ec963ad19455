// SPDX-License-Identifier: BSL-1.0
// What host_kernels.cpp counts, of this thread.
#pragma once

namespace gpu_test {

inline thread_local int launched = 0;
inline thread_local int launched_elsewhere = 0;  ///< on a stream of a device that was not current

}  // namespace gpu_test
