// expect: cohort: this form asks the other ranks for their counts.*all_gather_v\(in, out, counts\)
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
  static_cast<void>(world.all_gather_v(v));
#else
  static_cast<void>(world.all_gather_v(v, v, std::vector<int>{1, 2}));
#endif
}
