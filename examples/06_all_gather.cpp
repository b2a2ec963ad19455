// SPDX-License-Identifier: BSL-1.0
// adds: every rank gets what every rank has, in the order of the ranks: into one long buffer, into a list of buffers,
// or as one value from each. The values are those of the PyTorch documentation. And the form in _v, in which the ranks
// bring different numbers of elements.
#include <cohort/cohort.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <vector>

cohort::task<int> collect(cohort::communicator<cohort::cpu> world) {
  const auto size = static_cast<std::size_t>(world.size());
  const std::array mine{1 + 2 * world.rank(), 2 + 2 * world.rank()};

  std::vector<int> joined(2 * size);
  co_await world.all_gather(mine, joined);  // two ranks: [1, 2, 3, 4]

  std::vector<std::vector<int>> list(size, std::vector<int>(2));
  co_await world.all_gather(mine, list);  // two ranks: [[1, 2], [3, 4]]

  const std::vector<int> ranks = co_await world.all_gather(world.rank());  // two ranks: [0, 1]

  // Rank r has r + 1 elements. Where every rank knows all the counts, they are an argument; where each knows only its
  // own, the result tells them.
  const std::vector<int> some(static_cast<std::size_t>(world.rank()) + 1, world.rank());
  std::vector<std::size_t> counts(size);
  std::iota(counts.begin(), counts.end(), std::size_t{1});
  std::vector<int> joined_v(size * (size + 1) / 2);
  co_await world.all_gather_v(some, joined_v, counts);  // three ranks: [0, 1, 1, 2, 2, 2]
  const cohort::ragged<int> blocks = co_await world.all_gather_v(some);
  if (blocks.size() != world.size() || blocks.values() != joined_v) co_return 1;

  if (world.rank() == 0) {
    for (std::size_t r = 0; r < size; ++r) std::printf("from rank %d: [%d, %d]\n", ranks[r], list[r][0], list[r][1]);
  }
  for (int r = 0; r < world.size(); ++r) {
    const auto at = static_cast<std::size_t>(r);
    const std::vector expected{1 + 2 * r, 2 + 2 * r};
    if (list[at] != expected || joined[2 * at] != expected[0] || joined[2 * at + 1] != expected[1] || ranks[at] != r) {
      co_return 1;
    }
    if (blocks.count(r) != at + 1 || blocks[r].front() != r || blocks[r].back() != r) co_return 1;
  }
  co_return 0;
}

int main() { return cohort::run(collect); }
