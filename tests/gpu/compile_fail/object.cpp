// expect: cohort: an object is encoded in the memory of the host.*communicator of the host.*connect<cpu>\(\)
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
  static_cast<void>(world.broadcast_object(host, root{0}));
#else
  static_cast<void>(world.broadcast(v, root{0}));
#endif
}
