// SPDX-License-Identifier: BSL-1.0
// adds: every rank has a block for every rank: block r of rank s becomes block s of rank r, a transposition. The
// values are those of the PyTorch documentation, for four ranks: [0, 1, 2, 3] on rank 0, [4, 5, 6, 7] on rank 1, ...
// In all_to_all_v the blocks differ in size, and a receiver need not know beforehand how much it gets.
#include <cohort/cohort.hpp>

#include <cstddef>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

cohort::task<int> transpose(cohort::communicator<cohort::cpu> world) {
  const int size = world.size();
  std::vector<int> in(static_cast<std::size_t>(size));
  std::iota(in.begin(), in.end(), world.rank() * size);

  std::vector<int> out(in.size());
  co_await world.all_to_all(in, out);  // four ranks: [0, 4, 8, 12] on rank 0, [1, 5, 9, 13] on rank 1, ...

  std::string line;
  for (const int value : out) line += (line.empty() ? "" : ", ") + std::to_string(value);
  std::printf("rank %d: [%s]\n", world.rank(), line.c_str());
  for (int r = 0; r < size; ++r) {
    if (out[static_cast<std::size_t>(r)] != r * size + world.rank()) co_return 1;
  }

  std::vector<int> counts(in.size());  // 0 elements for rank 0, 1 for rank 1, ...
  std::iota(counts.begin(), counts.end(), 0);
  const std::vector<int> letters(static_cast<std::size_t>(size * (size - 1) / 2), world.rank());
  const cohort::ragged<int> post = co_await world.all_to_all_v(letters, counts);
  for (int r = 0; r < size; ++r) {
    if (post.count(r) != static_cast<std::size_t>(world.rank())) co_return 1;
    for (const int sender : post[r]) {
      if (sender != r) co_return 1;
    }
  }
  co_return 0;
}

int main() { return cohort::run(transpose); }
