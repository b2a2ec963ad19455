// expect: cohort: one value lies in the memory of the host.*co_await world.all_reduce\(loss, sum\{\}\).*device_buffer<T>\(1\)
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
  static_cast<void>(world.all_reduce(3.0f, sum{}));
#else
  static_cast<void>(world.all_reduce(v, sum{}));
#endif
}
