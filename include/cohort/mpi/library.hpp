// SPDX-License-Identifier: BSL-1.0
// The MPI library of this process: initialised here if the program has not done so, and then finalised at its exit.
// Asked first by mpi/connect.hpp.
#pragma once

#include <cohort/error.hpp>
#include <cohort/mpi/check.hpp>
#include <cohort/mpi/header.hpp>

#include <cstdlib>
#include <string>

namespace cohort::detail {

inline void finalise_mpi() noexcept {
  int done = 0;
  if (MPI_Finalized(&done) == MPI_SUCCESS && done == 0) MPI_Finalize();
}

/// MPI is running when this returns. A process can initialise it once only: what is begun here ends at exit, after the
/// last world, so that a program may open one world after another.
///
/// Needs:  the thread that will drive the communicator; MPI_THREAD_FUNNELED is enough
/// Errors: closed if the program has finalised MPI; invalid_argument if it has given MPI to another thread
inline void require_mpi() {
  int finalised = 0;
  check_mpi(MPI_Finalized(&finalised), "MPI_Finalized");
  if (finalised != 0) {
    throw error(errc::closed,
                "MPI has been finalised in this process, and cannot be started again: connect before that");
  }
  int running = 0;
  check_mpi(MPI_Initialized(&running), "MPI_Initialized");
  if (running == 0) {
    int provided = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    std::atexit([] { finalise_mpi(); });
  }
  int level = MPI_THREAD_SINGLE;
  int main_thread = 0;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  check_mpi(MPI_Is_thread_main(&main_thread), "MPI_Is_thread_main");
  if (main_thread == 0 && level < MPI_THREAD_SERIALIZED) {
    throw error(errc::invalid_argument,
                "this thread may not call MPI: the program asked MPI_Init_thread for less than MPI_THREAD_SERIALIZED, "
                "and another thread initialised it; connect on that thread");
  }
}

}  // namespace cohort::detail
