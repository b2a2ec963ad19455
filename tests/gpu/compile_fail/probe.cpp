// expect: cohort: NCCL tells nobody of a message before it is received.*communicator of the host.*probe
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
  static_cast<void>(world.probe(from{1}));
#else
  static_cast<void>(world.recv(v, from{1}));
#endif
}
