// expect: cohort: a buffer of this backend lies in the memory of a device.*device_span\(pointer, count\)
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
  static_cast<void>(world.batch(sending(host, to{1})));
#else
  static_cast<void>(world.batch(sending(v, to{1})));
#endif
}
