// SPDX-License-Identifier: BSL-1.0
// How often operator new was called in this program: allocations.cpp replaces it.
#pragma once

namespace gpu_benchmark {

[[nodiscard]] long allocations() noexcept;

}  // namespace gpu_benchmark
