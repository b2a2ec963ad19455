// SPDX-License-Identifier: BSL-1.0
// A kernel that holds a stream up until the host lets go, or for ten seconds, and tells the host by its last write that it
// ends: for tests of deadlines and to time waits. It waits for the host alone, never for another kernel.
#pragma once

#include <cohort/gpu/buffer.hpp>

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>

namespace gpu_test {

static __global__ void wait_for_host(volatile int* go, volatile int* ended, long long most_nanoseconds) {
  unsigned long long begin = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  for (unsigned long long now = begin; *go == 0 && now - begin < static_cast<unsigned long long>(most_nanoseconds);) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  }
  *ended = 1;
}

class hold_up {
 public:
  explicit hold_up(cudaStream_t s) : words_(2 * line) {
    words_[0] = 0;
    words_[line] = 0;
    wait_for_host<<<1, 1, 0, s>>>(words_.data(), words_.data() + line, 10'000'000'000LL);
    cohort::detail::check_cuda(cudaGetLastError(), "wait_for_host");
  }
  hold_up(const hold_up&) = delete;
  hold_up& operator=(const hold_up&) = delete;
  ~hold_up() { let_go(); }
  void let_go() const { std::atomic_ref<int>(words_[0]).store(1); }
  /// Whether the kernel has made its last write.
  [[nodiscard]] bool ended() const { return std::atomic_ref<int>(words_[line]).load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::size_t line = 64 / sizeof(int);
  cohort::pinned_buffer<int> words_;
};

}  // namespace gpu_test
