// SPDX-License-Identifier: BSL-1.0
// A kernel that holds a stream up until the host lets go, or for ten seconds: for tests of deadlines. It waits for the host
// alone, never for another kernel.
#pragma once

#include <cohort/gpu/buffer.hpp>

#include <cuda_runtime.h>

#include <atomic>

namespace gpu_test {

static __global__ void wait_for_host(volatile int* go, long long most_nanoseconds) {
  unsigned long long begin = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  for (unsigned long long now = begin; *go == 0 && now - begin < static_cast<unsigned long long>(most_nanoseconds);) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  }
}

class hold_up {
 public:
  explicit hold_up(cudaStream_t s) : go_(1) {
    go_[0] = 0;
    wait_for_host<<<1, 1, 0, s>>>(go_.data(), 10'000'000'000LL);
    cohort::detail::check_cuda(cudaGetLastError(), "wait_for_host");
  }
  hold_up(const hold_up&) = delete;
  hold_up& operator=(const hold_up&) = delete;
  ~hold_up() { let_go(); }
  void let_go() { std::atomic_ref<int>(go_[0]).store(1); }

 private:
  cohort::pinned_buffer<int> go_;
};

}  // namespace gpu_test
