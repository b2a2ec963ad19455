// SPDX-License-Identifier: BSL-1.0
// adds: a world of ranks, and one collective: every rank brings an array, every rank gets their sum.
//
//   cohort run -n 4 01_hello_all_reduce
#include <cohort/cohort.hpp>

#include <array>
#include <cstdio>

cohort::task<int> hello(cohort::communicator<cohort::cpu> world) {
  std::array grad{1.0f, static_cast<float>(world.rank()), 2.0f};
  co_await world.all_reduce(grad, cohort::sum{});  // in place, on every rank
  std::printf("rank %d of %d: [%g, %g, %g]\n", world.rank(), world.size(), grad[0], grad[1], grad[2]);

  const auto n = static_cast<float>(world.size());
  const std::array expected{n, n * (n - 1) / 2, 2 * n};
  co_return grad == expected ? 0 : 1;
}

int main() { return cohort::run(hello); }  // ranks and addresses come from the environment
