// expect: the elements must not be const
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  const std::vector<float> v(3);
  static_cast<void>(world.all_reduce(v, sum{}));
#else
  const std::vector<float> v(3);
  std::vector<float> out(3);
  static_cast<void>(world.all_reduce(v, out, sum{}));
#endif
}
