// SPDX-License-Identifier: BSL-1.0
#include <cohort/ops.hpp>
#include <cohort/run_local.hpp>
#include <cohort/version.hpp>

#include <cstdio>
#include <vector>

cohort::task<int> sum_of_ranks(cohort::communicator<cohort::inproc> world) {
  std::vector<float> values(1000, static_cast<float>(world.rank() + 1));
  co_await world.all_reduce(values, cohort::sum{});
  co_return values == std::vector<float>(1000, 3.0f) ? 0 : 1;
}

int main() {
  const std::vector<int> returned = cohort::run_local(2, sum_of_ranks);
  const bool right = returned == std::vector{0, 0};
  std::printf("cohort %s: %s\n", cohort::version_string.data(), right ? "2 ranks agree" : "WRONG");
  return right ? 0 : 1;
}
