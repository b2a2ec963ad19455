// expect: cohort: NCCL cannot say which rank has not come.*monitored_barrier on the communicator of the host
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
  static_cast<void>(world.monitored_barrier());
#else
  static_cast<void>(world.barrier());
#endif
}
