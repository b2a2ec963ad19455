// expect: input and output have different element types
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  std::vector<float> in(1);
  std::vector<double> out(1);
  static_cast<void>(world.all_gather(in, out));
#else
  std::vector<float> in(1), out(1);
  static_cast<void>(world.all_gather(in, out));
#endif
}
