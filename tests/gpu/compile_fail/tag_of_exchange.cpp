// expect: cohort: NCCL has no tags, its messages match in the order of the calls.*world\.batch\(sending
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
  static_cast<void>(world.exchange(v, to{1}, v, from{1}, tag{7}));
#else
  static_cast<void>(world.exchange(v, to{1}, v, from{1}));
#endif
}
