// SPDX-License-Identifier: BSL-1.0
// Parts of a program one after the other, each in a world of its own: one start of mpirun takes longer than most of them.
#pragma once

#include <cohort/mpi/library.hpp>

#include <cstdio>
#include <string>

namespace mpi_test {

/// Runs the parts that argv names, in turn. Rank 0 says which it is, so that one that hangs has a name; one that is wrong
/// anywhere is named too, and those behind it are run all the same.
///
/// Needs:  run_part(name) is 0 where this rank has found everything right
/// Result: 0 when all parts are right on all ranks
template <class RunPart>
int in_turn(int argc, char** argv, RunPart run_part) {
  if (argc <= 2) return run_part(argc > 1 ? argv[1] : "");
  cohort::detail::require_mpi();
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::string failed;
  for (int at = 1; at < argc; ++at) {
    if (rank == 0) {
      std::printf("== %s\n", argv[at]);
      std::fflush(stdout);
    }
    const int wrong_here = run_part(argv[at]) == 0 ? 0 : 1;
    int wrong = 0;
    MPI_Allreduce(&wrong_here, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (wrong == 0) continue;
    if (rank == 0) std::fprintf(stderr, "%s: FAILED on %d of %d ranks\n", argv[at], wrong, size);
    failed += failed.empty() ? argv[at] : std::string(", ") + argv[at];
  }
  if (failed.empty()) return 0;
  if (rank == 0) std::fprintf(stderr, "FAILED: %s\n", failed.c_str());
  return 1;
}

}  // namespace mpi_test
