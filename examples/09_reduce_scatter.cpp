// SPDX-License-Identifier: BSL-1.0
// adds: a reduction whose result is dealt out: rank r gets block r of the sum. Half of an all_reduce, and all that is
// needed where every rank keeps only its share (of the state of an optimiser, say). In reduce_scatter_v the shares
// differ in size, as they must where the number of elements is no multiple of the number of ranks.
#include <cohort/cohort.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <numeric>
#include <vector>

cohort::task<int> fold(cohort::communicator<cohort::cpu> world) {
  std::vector<int> in(2 * static_cast<std::size_t>(world.size()));
  std::iota(in.begin(), in.end(), 0);  // 0, 1, 2, ... on every rank, as in the PyTorch documentation

  std::array mine{0, 0};
  co_await world.reduce_scatter(in, mine, cohort::sum{});  // two ranks: [0, 2] and [4, 6]
  std::printf("rank %d: [%d, %d]\n", world.rank(), mine[0], mine[1]);

  constexpr std::size_t elements = 11;
  const auto size = static_cast<std::size_t>(world.size());
  const auto first_of = [size](std::size_t r) { return elements * r / size; };
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < size; ++r) counts.push_back(first_of(r + 1) - first_of(r));
  std::array<int, elements> ones{};
  ones.fill(1);
  std::vector<int> share(counts[static_cast<std::size_t>(world.rank())]);
  co_await world.reduce_scatter_v(ones, share, counts, cohort::sum{});

  const std::array expected{2 * world.rank() * world.size(), (2 * world.rank() + 1) * world.size()};
  co_return mine == expected && share == std::vector<int>(share.size(), world.size()) ? 0 : 1;
}

int main() { return cohort::run(fold); }
