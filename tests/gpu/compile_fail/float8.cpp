// expect: cohort: 8-bit floats are storage only
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
  device_buffer<float8_e4m3> f;
  static_cast<void>(world.all_reduce(f, sum{}));
#else
  device_buffer<float8_e4m3> f;
  static_cast<void>(world.broadcast(f, root{0}));
#endif
}
