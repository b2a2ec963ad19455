// SPDX-License-Identifier: BSL-1.0
// A kernel that calls a function for every index, one thread each, with the function where all threads read it at once. For
// functions that hold an array and index it: cub::DeviceFor::Bulk copies such a one into memory of every thread, and takes
// two to three times as long for it. Used by gpu/fold.cuh.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace cohort::detail {

inline constexpr int each_index_threads = 256;

template <class Function>
__global__ void __launch_bounds__(each_index_threads)
    each_index_kernel(const __grid_constant__ Function f, std::size_t count) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * each_index_threads + threadIdx.x;
  if (i < count) f(i);
}

/// Calls f(0) to f(count - 1), in no order.
template <class Function>
[[nodiscard]] cudaError_t for_each_index(std::size_t count, const Function& f, cudaStream_t s) {
  if (count == 0) return cudaSuccess;
  const std::size_t blocks = (count + each_index_threads - 1) / each_index_threads;
  each_index_kernel<<<static_cast<unsigned>(blocks), each_index_threads, 0, s>>>(f, count);
  return cudaGetLastError();
}

}  // namespace cohort::detail
