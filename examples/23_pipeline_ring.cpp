// SPDX-License-Identifier: BSL-1.0
// adds: batches, probes and buffers that grow. The exchange of the PyTorch tutorial in one batch; then a pipeline whose
// stages pass on pieces of work of sizes that only their sender knows.
#include <cohort/cohort.hpp>

#include <array>
#include <cstdio>
#include <numeric>
#include <vector>

constexpr cohort::tag work{1};
constexpr cohort::tag end_of_work{2};

cohort::task<int> pass_on(cohort::communicator<cohort::cpu> world) {
  const int n = world.size();
  const int rank = world.rank();

  // Everybody sends to the right and receives from the left, at once.
  const std::array mine{2.0F * static_cast<float>(rank), 2.0F * static_cast<float>(rank) + 1};
  std::array theirs{-1.0F, -1.0F};
  const int left = (rank + n - 1) % n;
  auto batch =
      world.batch(cohort::sending(mine, cohort::to{(rank + 1) % n}), cohort::receiving(theirs, cohort::from{left}));
  co_await batch.all();
  std::printf("rank %d: [%.0f, %.0f]\n", rank, theirs[0], theirs[1]);
  if (theirs[0] != 2.0F * static_cast<float>(left)) co_return 1;

  // A pipeline of n stages: the first makes pieces of work, each stage adds its rank, the last one checks them.
  constexpr std::size_t pieces = 20;
  std::vector<long> piece;
  std::size_t seen = 0;
  for (;; ++seen) {
    if (rank == 0) {
      if (seen == pieces) break;
      piece.assign(seen * 100, 0);  // the first one is empty
    } else {
      const cohort::received next = co_await world.probe(cohort::from{rank - 1}, cohort::any_tag);
      co_await world.recv(cohort::growing(piece), cohort::from{rank - 1}, cohort::tag{next.tag});
      if (next.tag == end_of_work.value) break;
      for (long& x : piece) x += rank;
    }
    if (rank + 1 < n) {
      co_await world.send(piece, cohort::to{rank + 1}, work);
    } else {
      const long expected = static_cast<long>(n) * (n - 1) / 2 * static_cast<long>(piece.size());
      if (piece.size() != seen * 100 || std::accumulate(piece.begin(), piece.end(), 0L) != expected) co_return 1;
    }
  }
  piece.clear();
  if (rank + 1 < n) co_await world.send(piece, cohort::to{rank + 1}, end_of_work);
  if (rank + 1 == n) std::printf("%zu pieces came through %d stages\n", seen, n);
  co_return seen == pieces ? 0 : 1;
}

int main() { return cohort::run(pass_on); }
