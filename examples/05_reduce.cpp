// SPDX-License-Identifier: BSL-1.0
// adds: reduce, whose result only the root gets, and the two running forms: scan, in which rank r gets the result of
// ranks 0 .. r, and exclusive_scan, in which it gets that of the ranks before it.
#include <cohort/cohort.hpp>

#include <array>
#include <cmath>
#include <cstdio>

cohort::task<int> fold(cohort::communicator<cohort::cpu> world) {
  const int rank = world.rank();

  const std::array in{2.0, -1.0};
  std::array out{0.0, 0.0};
  co_await world.reduce(in, out, cohort::product{}, cohort::root{0});
  if (rank == 0) std::printf("rank 0: the product of everybody's is [%g, %g]\n", out[0], out[1]);

  // How many rows do I have, up to which row of the whole, and where do mine begin?
  const std::array rows{10 + rank};
  std::array up_to{0};
  std::array begin{-1};
  co_await world.scan(rows, up_to, cohort::sum{});
  co_await world.exclusive_scan(rows, begin, cohort::sum{});  // nobody is before rank 0: it gets 0, sum's identity
  const int line = co_await world.exclusive_scan(rows[0], cohort::sum{}, cohort::initial{2});  // or what you say
  std::printf("rank %d: rows %d .. %d, from line %d\n", rank, begin[0], up_to[0] - 1, line);

  std::array expected{0.0, 0.0};  // what the others keep
  if (rank == 0) expected = {std::pow(2.0, world.size()), world.size() % 2 == 0 ? 1.0 : -1.0};
  const int before = 10 * rank + rank * (rank - 1) / 2;
  const bool running = begin[0] == before && up_to[0] == before + rows[0] && line == before + 2;
  co_return out == expected && running ? 0 : 1;
}

int main() { return cohort::run(fold); }
