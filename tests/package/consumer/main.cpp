// SPDX-License-Identifier: BSL-1.0
// The one program that is built in every way in which cohort can be consumed: two ranks, one sum, one object.
#include <cohort/cohort.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#if !COHORT_VERSION_AT_LEAST(0, 1, 0) || COHORT_VERSION_AT_LEAST(1000, 0, 0)
#error "the version macros of cohort do not compare"
#endif

cohort::task<int> meet(cohort::communicator<cohort::inproc> world) {
  std::vector<double> values{1.0, static_cast<double>(world.rank())};
  co_await world.all_reduce(values, cohort::sum{});
  std::string word = world.rank() == 0 ? "from rank 0" : "";
  word = co_await world.broadcast_object(word, cohort::root{0});
  co_return values == std::vector{2.0, 1.0} && word == "from rank 0" ? 0 : 1;
}

int main() {
  const std::vector<int> returned = cohort::run_local(2, meet);
  const int worst = *std::max_element(returned.begin(), returned.end());
  std::printf("cohort %s: %s\n", cohort::version_string.data(), worst == 0 ? "2 ranks agree" : "WRONG");
  return worst;
}
