// expect: cohort: this form returns values in the memory of the host.*all_gather\(in, out\)
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
  static_cast<void>(world.gather(v, root{0}));
#else
  static_cast<void>(world.gather(v, v, root{0}));
#endif
}
