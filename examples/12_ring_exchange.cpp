// SPDX-License-Identifier: BSL-1.0
// adds: sends and receives that are in flight together. Each rank sends to its right and receives from its left;
// neither may wait for the other, or the ring would stand still. exchange() is the same pair as one operation.
#include <cohort/cohort.hpp>

#include <array>
#include <cstdio>
#include <utility>

cohort::task<int> pass_on(cohort::communicator<cohort::cpu> world) {
  const int size = world.size();
  const int right = (world.rank() + 1) % size;
  const int left = (world.rank() + size - 1) % size;
  const std::array mine{2 * world.rank(), 2 * world.rank() + 1};
  std::array theirs{-1, -1};

  auto sending = world.send(mine, cohort::to{right});  // an operation starts when it is called
  auto receiving = world.recv(theirs, cohort::from{left});
  co_await cohort::when_all(std::move(sending), std::move(receiving));

  std::printf("rank %d: [%d, %d] from rank %d\n", world.rank(), theirs[0], theirs[1], left);
  const std::array expected{2 * left, 2 * left + 1};
  if (theirs != expected) co_return 1;

  std::array back{-1, -1};
  co_await world.exchange(theirs, cohort::to{left}, back, cohort::from{right});  // and home again
  co_return back == mine ? 0 : 1;
}

int main() { return cohort::run(pass_on); }
