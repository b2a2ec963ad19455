// expect: cohort: NCCL has no tags, so there is none to be told
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
  static_cast<void>(world.batch(receiving(v, from{1}, any_tag)));
#else
  static_cast<void>(world.batch(receiving(v, from{1}, tag{3})));
#endif
}
