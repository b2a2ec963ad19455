// expect: pass elements of a type that needs more in a buffer
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <vector>

struct alignas(128) block {
  float x[32];
};

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  static_cast<void>(world.broadcast(block{}, root{0}));
#else
  std::vector<block> one(1);
  static_cast<void>(world.broadcast(one, root{0}));
#endif
}
