// SPDX-License-Identifier: BSL-1.0
// A program that has MPI for itself: cohort takes communicators of the program's, several at a time, and leaves MPI
// running; the program finalises it. mpirun -n 4.
#include <cohort/backend/mpi.hpp>
#include <cohort/cohort.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("expected ") + what);
}

int worlds() {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // The ranks of this half, in reverse.
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  {
    cohort::communicator<cohort::mpi> all = cohort::connect<cohort::mpi>(MPI_COMM_WORLD);
    cohort::communicator<cohort::mpi> part = cohort::connect<cohort::mpi>(half);
    MPI_Comm_free(&half);  // a copy is in use
    expect(all.rank() == rank && all.size() == size, "the ranks of MPI_COMM_WORLD");
    expect(part.size() == (size + 1 - rank % 2) / 2, "the size of this half");
    std::vector<double> v(70000, rank + 1.0);
    auto first = all.all_reduce(v, cohort::sum{});
    auto second = part.all_reduce(part.rank(), cohort::max{});
    // What the program itself sends does not meet what cohort sends.
    int token = rank;
    MPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(token == size * (size - 1) / 2, "the program's own sum");
    expect(second.wait() == part.size() - 1, "the highest rank of this half");
    first.wait();
    for (const double each : v) expect(each == size * (size + 1) / 2.0, "the sum over all");
  }
  // What MPI_Comm_split gives to a process that is in no part.
  try {
    const auto none = cohort::connect<cohort::mpi>(MPI_COMM_NULL);
    expect(false, "MPI_COMM_NULL to be refused");
  } catch (const cohort::error& e) {
    expect(e.condition() == cohort::errc::invalid_argument, e.what());
  }
  // And once more, after they are gone.
  cohort::communicator<cohort::mpi> again = cohort::connect<cohort::mpi>();
  expect(again.all_reduce(1, cohort::sum{}).wait() == size, "a world after the others");
  return 0;
}

int refused_after_the_end() {
  try {
    auto world = cohort::connect<cohort::mpi>();
  } catch (const cohort::error& e) {
    const bool right = e.condition() == cohort::errc::closed &&
                       std::string(e.what()).find("MPI has been finalised in this process") != std::string::npos;
    if (!right) std::fprintf(stderr, "found: %s\n", e.what());
    return right ? 0 : 1;
  }
  std::fputs("expected an error after MPI_Finalize\n", stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int code = 1;
  try {
    code = worlds();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
  }
  MPI_Finalize();
  return code != 0 ? code : refused_after_the_end();
}
