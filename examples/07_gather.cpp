// SPDX-License-Identifier: BSL-1.0
// adds: the root alone gets what every rank has; the others need no room for it. In gather_v each rank may bring a
// different number of elements, and the root need not know how many.
#include <cohort/cohort.hpp>

#include <array>
#include <cstdio>
#include <vector>

cohort::task<int> collect(cohort::communicator<cohort::cpu> world) {
  const auto rank = static_cast<float>(world.rank());
  const std::array mine{rank, rank};

  std::vector<std::vector<float>> list;
  if (world.rank() == 0) list.assign(static_cast<std::size_t>(world.size()), std::vector<float>(2));
  co_await world.gather(mine, list, cohort::root{0});  // two ranks: [[0, 0], [1, 1]] on rank 0

  const std::vector<float> some(static_cast<std::size_t>(3 * world.rank() % 4), rank);  // 0, 3, 2, 1, 0, ... of them
  const cohort::ragged<float> blocks = co_await world.gather_v(some, cohort::root{0});

  if (world.rank() != 0) co_return list.empty() && blocks.values().empty() ? 0 : 1;
  for (int r = 0; r < world.size(); ++r) {
    const std::vector<float>& pair = list[static_cast<std::size_t>(r)];
    std::printf("from rank %d: [%g, %g], and %zu more\n", r, pair[0], pair[1], blocks.count(r));
    if (pair != std::vector<float>(2, static_cast<float>(r))) co_return 1;
    if (blocks.count(r) != static_cast<std::size_t>(3 * r % 4)) co_return 1;
    for (const float value : blocks[r]) {
      if (value != static_cast<float>(r)) co_return 1;
    }
  }
  co_return 0;
}

int main() { return cohort::run(collect); }
