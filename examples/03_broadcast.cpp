// SPDX-License-Identifier: BSL-1.0
// adds: a root. One rank's buffer becomes everybody's.
#include <cohort/cohort.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

cohort::task<int> share(cohort::communicator<cohort::cpu> world) {
  const int last = world.size() - 1;
  std::vector<int> settings(3);  // the same length on every rank
  if (world.rank() == last) std::iota(settings.begin(), settings.end(), 10);

  co_await world.broadcast(settings, cohort::root{last});

  std::printf("rank %d: [%d, %d, %d]\n", world.rank(), settings[0], settings[1], settings[2]);
  co_return settings == std::vector{10, 11, 12} ? 0 : 1;
}

int main() { return cohort::run(share); }
