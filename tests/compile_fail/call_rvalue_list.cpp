// expect: list of buffers would be gone
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  std::vector<int> in(1);
  static_cast<void>(world.all_gather(in, std::vector<std::vector<int>>(1, std::vector<int>(1))));
#else
  std::vector<int> in(1);
  std::vector<std::vector<int>> out(1, std::vector<int>(1));
  static_cast<void>(world.all_gather(in, out));
#endif
}
