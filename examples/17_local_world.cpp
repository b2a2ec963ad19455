// SPDX-License-Identifier: BSL-1.0
// adds: a world inside this process, with no launcher and no network: for trying things out, and for your tests.
#include <cohort/cohort.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

cohort::task<int> hello(cohort::communicator<cohort::inproc> world) {
  std::array values{1.0, static_cast<double>(world.rank())};
  co_await world.all_reduce(values, cohort::sum{});
  std::printf("rank %d of %d: [%g, %g]\n", world.rank(), world.size(), values[0], values[1]);

  const double n = world.size();
  const std::array expected{n, n * (n - 1) / 2};
  co_return values == expected ? 0 : 1;
}

int main() {
  const std::vector<int> returned = cohort::run_local(8, hello);  // the same code, with eight ranks
  return *std::max_element(returned.begin(), returned.end());
}
