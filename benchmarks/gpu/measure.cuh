// SPDX-License-Identifier: BSL-1.0
// How the benchmark of the GPU side times and prints: device seconds by events, host nanoseconds by batches.
#pragma once

#include <cohort/gpu/check.hpp>

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace gpu_benchmark {

using cohort::detail::check_cuda;
using clock_type = std::chrono::steady_clock;

inline void print(const std::string& name, double value, const char* unit) {
  std::printf("%-58s %12.3f %s\n", name.c_str(), value, unit);
  std::fflush(stdout);
}
inline double seconds_since(clock_type::time_point t) {
  return std::chrono::duration<double>(clock_type::now() - t).count();
}
inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Device seconds of one call of `work`: the median of several batches, by events with timing.
template <class Work>
double device_seconds(cudaStream_t s, const Work& work, int batch = 10) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check_cuda(cudaEventCreate(&begin), "cudaEventCreate");
  check_cuda(cudaEventCreate(&end), "cudaEventCreate");
  for (int i = 0; i < 3; ++i) work();
  std::vector<double> each;
  for (int k = 0; k < 9; ++k) {
    check_cuda(cudaEventRecord(begin, s), "cudaEventRecord");
    for (int i = 0; i < batch; ++i) work();
    check_cuda(cudaEventRecord(end, s), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    each.push_back(milliseconds / 1e3 / batch);
  }
  static_cast<void>(cudaEventDestroy(begin));
  static_cast<void>(cudaEventDestroy(end));
  return median(each);
}
/// Host nanoseconds of one call, the stream being emptied between batches so that its queue never is what is measured.
template <class Work>
double host_nanoseconds(cudaStream_t s, const Work& work, int batch, int batches = 200) {
  std::vector<double> each;
  for (int k = 0; k < batches; ++k) {
    const auto t = clock_type::now();
    for (int i = 0; i < batch; ++i) work();
    each.push_back(seconds_since(t) * 1e9 / batch);
    check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
  }
  return median(each);
}

}  // namespace gpu_benchmark
