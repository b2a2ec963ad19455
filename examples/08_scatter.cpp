// SPDX-License-Identifier: BSL-1.0
// adds: the root deals out one piece to each rank; the others bring nothing. With two ranks the pieces are the ones
// and the fives of the PyTorch documentation. In scatter_v the pieces differ in size, and only the root knows how.
#include <cohort/cohort.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <vector>

cohort::task<int> deal(cohort::communicator<cohort::cpu> world) {
  std::vector<std::vector<float>> pieces;
  if (world.rank() == 0) {
    for (int r = 0; r < world.size(); ++r) pieces.emplace_back(2, static_cast<float>(1 + 4 * r));
  }
  std::array mine{0.0f, 0.0f};
  co_await world.scatter(pieces, mine, cohort::root{0});
  std::printf("rank %d: [%g, %g]\n", world.rank(), mine[0], mine[1]);

  std::vector<int> rows;
  std::vector<std::size_t> counts;
  if (world.rank() == 0) {  // ten rows, dealt out as evenly as they can be: 3, 3, 2, 2 with four ranks
    rows.resize(10);
    std::iota(rows.begin(), rows.end(), 0);
    const auto size = static_cast<std::size_t>(world.size());
    for (std::size_t r = 0; r < size; ++r) counts.push_back((10 + size - 1 - r) / size);
  }
  const std::vector<int> share = co_await world.scatter_v(rows, counts, cohort::root{0});
  std::printf("rank %d: %zu of 10 rows\n", world.rank(), share.size());

  const auto expected = static_cast<float>(1 + 4 * world.rank());
  const int seen = co_await world.all_reduce(std::accumulate(share.begin(), share.end(), 0), cohort::sum{});
  co_return mine[0] == expected && mine[1] == expected && seen == 45 ? 0 : 1;
}

int main() { return cohort::run(deal); }
