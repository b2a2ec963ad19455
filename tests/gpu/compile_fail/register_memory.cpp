// expect: cohort: memory that NCCL has registered.*make_window<T>\(count\)
// SPDX-License-Identifier: BSL-1.0
#include <cohort/backend/nccl.hpp>

#include <stop_token>
#include <vector>

void call(cohort::communicator<cohort::nccl>& world) {
  using namespace cohort;
  device_buffer<float> v;
  std::vector<float> host(3);
  static_cast<void>(host);
#ifdef COHORT_FAIL
  static_cast<void>(world.register_memory(v));
#else
  static_cast<void>(world.make_window<float>(16));
#endif
}
