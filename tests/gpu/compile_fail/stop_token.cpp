// expect: cohort: the trailing arguments of a call on this backend.*stop\{token\} goes nowhere
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
  static_cast<void>(world.all_reduce(v, sum{}, stop{std::stop_token{}}));
#else
  static_cast<void>(world.all_reduce(v, sum{}, on{nullptr}));
#endif
}
