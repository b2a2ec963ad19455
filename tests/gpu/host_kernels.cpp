// SPDX-License-Identifier: BSL-1.0
// Launches of kernels beside host_runtime.cpp, for tests of when and where something is launched: what nvcc makes of
// `kernel<<<...>>>` comes here, is counted, and carried out by nobody.
#include "host_kernels.hpp"

#include "host_runtime.hpp"

#include <cstddef>
#include <cstring>

namespace {

struct configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local configuration next;

cudaError_t launch(cudaStream_t s) {
  ++gpu_test::launched;
  if (gpu_test::device_of(s) != gpu_test::current()) ++gpu_test::launched_elsewhere;
  return cudaSuccess;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* one = nullptr;
  return &one;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*) {}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t s) {
  return next = {grid, block, shared, s}, 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* s) {
  *grid = next.grid;
  *block = next.block;
  *shared = next.shared;
  std::memcpy(s, &next.stream, sizeof next.stream);
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void*) { return *kernel = nullptr, cudaSuccess; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t s) { return launch(s); }
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t s) { return launch(s); }

cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
  gpu_test::enqueue_on_host(s, [=] { std::memset(p, value, bytes); });
  return cudaSuccess;
}

}  // extern "C"
