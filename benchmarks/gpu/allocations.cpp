// SPDX-License-Identifier: BSL-1.0
// Counts the calls of operator new. Apart from gpu.cu, because nvcc makes device code of one that stands in a .cu.
#include "allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<long> counted{0};

long gpu_benchmark::allocations() noexcept { return counted; }

void* operator new(std::size_t bytes) {
  ++counted;
  if (void* const p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
