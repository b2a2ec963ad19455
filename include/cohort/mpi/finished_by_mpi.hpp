// SPDX-License-Identifier: BSL-1.0
// Whether MPI has finished with a request, asked so that it costs nothing if it has. Used by the endpoint, of what it has sent.
#pragma once

#include <cohort/mpi/check.hpp>
#include <cohort/mpi/header.hpp>

namespace cohort::detail {

/// If so, there is no request any more. MPICH's MPI_Test first moves everything it has to move, which over TCP is a call of
/// epoll_wait: what is short has mostly been sent where it was given to MPI, and this asks about that alone. Of what has not, MPI
/// moves as much as it can, as in MPI_Test.
///
/// Errors: those of `check_mpi`
[[nodiscard]] inline bool finished_by_mpi(MPI_Request& r) {
  int done = 0;
  check_mpi(MPI_Request_get_status(r, &done, MPI_STATUS_IGNORE), "MPI_Request_get_status");
  if (done == 0) return false;
  check_mpi(MPI_Wait(&r, MPI_STATUS_IGNORE), "MPI_Wait");
  return true;
}

}  // namespace cohort::detail
