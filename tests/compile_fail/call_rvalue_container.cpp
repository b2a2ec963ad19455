// expect: would be gone before the operation has used it
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  static_cast<void>(world.all_reduce(std::vector<float>(3), sum{}));
#else
  std::vector<float> v(3);
  static_cast<void>(world.all_reduce(v, sum{}));
#endif
}
