// SPDX-License-Identifier: BSL-1.0
// A consumer of the component mpi: cohort::mpi brings MPI's headers and libraries.
#include <cohort/backend/mpi.hpp>
#include <cohort/communicator.hpp>
#include <cohort/ops.hpp>
#include <cohort/sync_wait.hpp>

int main() {
  auto world = cohort::connect<cohort::mpi>();
  auto counting = world.all_reduce(1, cohort::sum{});
  return cohort::sync_wait(counting) == world.size() && world.size() == 2 ? 0 : 1;
}
