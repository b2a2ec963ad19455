// expect: no value is known that changes nothing under this functor
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  static_cast<void>(world.exclusive_scan(1, [](int a, int b) { return a * 31 + b; }));
#else
  static_cast<void>(world.exclusive_scan(1, [](int a, int b) { return a * 31 + b; }, initial{0}));
#endif
}
