// SPDX-License-Identifier: BSL-1.0
// run<mpi>: the main function of a rank of an MPI job. As run.hpp, but MPI says who is who.
#pragma once

#include <cohort/mpi/connect.hpp>
#include <cohort/run.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

template <class Main>
int run_over_mpi(Main& rank_main) {
  mpi_options o;
  try {
    o = mpi_options_from_environment();
  } catch (const std::exception& e) {
    print_failure(-1, {}, e.what());
    return 2;
  }
  const std::string host = host_name();
  int rank = -1;
  try {
    communicator<mpi> world = connect<mpi>(o);
    rank = world.rank();
    const std::shared_ptr<transport::engine> engine = world.calls().state()->shared_engine();
    int code = 0;
    {
      auto work = run_rank(rank_main, std::move(world));
      code = sync_wait(work);
    }
    // The other ranks may still need what this one sent.
    static_cast<transport::mpi_endpoint&>(*engine).wait_until_all_left(transport::engine::clock::time_point::max());
    return code;
  } catch (const std::exception& e) {
    print_failure(rank, host, e.what());
  } catch (...) {
    print_failure(rank, host, "an exception that is not a std::exception");
  }
  return 1;
}

}  // namespace detail

/// Joins the world of the MPI job, runs `rank_main` as this process's rank, and leaves; `run(rank_main)` does so too
/// where rank_main takes a communicator<mpi>.
///
/// Result:  what rank_main returned, 0 if it returns nothing; 1 after an error, which is printed on stderr with rank
///          and host; 2 if a variable is wrong
/// Needs:   rank_main(communicator<mpi>) is a coroutine that returns task<> or task<int>
/// Errors:  none: the exit code tells
/// Cancels: an exception that leaves rank_main aborts the world
/// Example: examples/01_hello_all_reduce.cpp, compiled for mpi by tests/mpi
template <backend Backend, class Main>
  requires(std::same_as<Backend, mpi>)
&&detail::rank_task<std::invoke_result_t<Main&, communicator<Backend>>> int run(Main&& rank_main) {
  return detail::run_over_mpi(rank_main);
}
template <class Main>
  requires(!std::invocable<Main&, communicator<cpu>>)
&&detail::rank_task<std::invoke_result_t<Main&, communicator<mpi>>> int run(Main&& rank_main) {
  return detail::run_over_mpi(rank_main);
}

}  // namespace cohort
