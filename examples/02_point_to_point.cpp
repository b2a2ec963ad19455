// SPDX-License-Identifier: BSL-1.0
// adds: messages from one rank to another. First the pair of the PyTorch tutorial, rank 0 to rank 1; then one rank
// takes a message from each of the others, in whatever order they come.
#include <cohort/cohort.hpp>

#include <array>
#include <cstdio>

cohort::task<int> talk(cohort::communicator<cohort::cpu> world) {
  if (world.size() < 2) {
    std::puts("a message needs two ranks: cohort run -n 2 02_point_to_point");
    co_return 0;
  }
  std::array data{0.0f};
  if (world.rank() == 0) {
    data[0] += 1;
    co_await world.send(data, cohort::to{1});
  } else if (world.rank() == 1) {
    co_await world.recv(data, cohort::from{0});
  }
  if (world.rank() < 2) std::printf("rank %d has data %.1f\n", world.rank(), data[0]);
  if (data[0] != (world.rank() < 2 ? 1.0f : 0.0f)) co_return 1;

  constexpr cohort::tag squares{7};
  if (world.rank() != 0) {
    const std::array mine{world.rank() * world.rank()};
    co_await world.send(mine, cohort::to{0}, squares);
    co_return 0;
  }
  for (int message = 1; message < world.size(); ++message) {
    std::array<int, 4> room{};  // a message may be shorter than the buffer
    const cohort::received got = co_await world.recv(room, cohort::from_any, squares);
    std::printf("rank 0 got %zu value from rank %d: %d\n", got.count, got.source, room[0]);
    if (got.count != 1 || room[0] != got.source * got.source) co_return 1;
  }
  co_return 0;
}

int main() { return cohort::run(talk); }
