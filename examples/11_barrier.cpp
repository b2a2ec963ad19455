// SPDX-License-Identifier: BSL-1.0
// adds: a line that nobody crosses before everybody has reached it. Here it separates the writing of a file by each
// rank from the reading of all of them by rank 0, on one host.
#include <cohort/cohort.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

cohort::task<int> meet(cohort::communicator<cohort::cpu> world) {
  unsigned run = std::random_device{}();  // so that two runs at once do not meet in the same files
  run = co_await world.all_reduce(run, cohort::bit_xor{});
  const auto file_of = [run](int rank) {
    return std::filesystem::temp_directory_path() / ("barrier-" + std::to_string(run) + "-" + std::to_string(rank));
  };
  std::ofstream(file_of(world.rank())) << world.rank();

  co_await world.barrier();

  int exit_code = 0;
  for (int r = 0; r < world.size() && world.rank() == 0; ++r) {
    int found = -1;
    std::ifstream(file_of(r)) >> found;
    std::printf("the file of rank %d says %d\n", r, found);
    if (found != r) exit_code = 1;
  }
  co_await world.barrier();  // nobody removes what rank 0 still reads
  std::filesystem::remove(file_of(world.rank()));
  co_return exit_code;
}

int main() { return cohort::run(meet); }
