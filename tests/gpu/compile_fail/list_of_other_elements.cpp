// expect: cohort: a buffer and the buffers of the list have different element types
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
  std::vector<device_buffer<double>> list(2);
  static_cast<void>(world.all_gather(v, list));
#else
  std::vector<device_buffer<float>> list(2);
  static_cast<void>(world.all_gather(v, list));
#endif
}
