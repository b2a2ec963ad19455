// expect: cohort: a root is a type.*write root\{0\}
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  std::vector<float> v(3);
  static_cast<void>(world.reduce(v, sum{}, 0));
#else
  std::vector<float> v(3);
  static_cast<void>(world.reduce(v, sum{}, root{0}));
#endif
}
