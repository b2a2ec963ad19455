// SPDX-License-Identifier: BSL-1.0
// adds: what happens when a rank does not come. The last rank never calls all_reduce; after half a second the others
// get an error that names it, and it learns from them that it was missed. No rank hangs and none is killed.
#include <cohort/cohort.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

cohort::task<int> miss(cohort::communicator<cohort::cpu> world) {
  const int absent = world.size() - 1;
  if (absent == 0) {
    std::puts("nobody can be missed in a world of one: cohort run -n 4 16_timeouts_and_errors");
    co_return 0;
  }
  std::array data{1.0f, 2.0f};
  try {
    if (world.rank() == absent) {
      co_await world.recv(data, cohort::from{0});  // waits for a message that nobody sends
    } else {
      co_await world.all_reduce(data, cohort::sum{}, cohort::timeout{std::chrono::milliseconds(500)});
    }
  } catch (const cohort::error& e) {
    std::printf("rank %d caught: %s\n", world.rank(), e.what());
    const bool named = std::string(e.what()).find("rank " + std::to_string(absent)) != std::string::npos;
    co_return named ? 0 : 1;
  }
  co_return 1;  // it cannot have succeeded
}

int main() { return cohort::run(miss); }
