// expect: cohort: NCCL cannot receive from whoever comes first.*communicator of the host
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
  static_cast<void>(world.batch(receiving(v, from_any)));
#else
  static_cast<void>(world.batch(receiving(v, from{1})));
#endif
}
