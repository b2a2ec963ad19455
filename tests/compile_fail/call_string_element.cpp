// expect: an element type must be trivially copyable
// SPDX-License-Identifier: BSL-1.0
#include <cohort/run_local.hpp>

#include <list>
#include <string>
#include <vector>

void call(cohort::communicator<cohort::inproc>& world) {
  using namespace cohort;
#ifdef COHORT_FAIL
  std::vector<std::string> v(3);
  static_cast<void>(world.broadcast(v, root{0}));
#else
  std::vector<char> v(3);
  static_cast<void>(world.broadcast(v, root{0}));
#endif
}
