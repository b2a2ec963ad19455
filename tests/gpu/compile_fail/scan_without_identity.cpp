// expect: cohort: no value is known that changes nothing under this functor
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
  static_cast<void>(world.exclusive_scan(v, v, [](float a, float b) { return a < b ? a : b; }));
#else
  static_cast<void>(world.exclusive_scan(v, v, sum{}));
#endif
}
