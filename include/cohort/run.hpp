// SPDX-License-Identifier: BSL-1.0
// run: the main function of a rank, from the launcher's environment to the exit code.
#pragma once

#include <cohort/connect.hpp>
#include <cohort/detail/host_name.hpp>
#include <cohort/detail/print_failure.hpp>
#include <cohort/run_local.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>

#include <chrono>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

template <class Backend, class Main>
int run_connected(const connect_options& o, Main& rank_main) {
  const std::string host = host_name();
  try {
    communicator<Backend> world = connect<Backend>(o);
    const std::shared_ptr<transport::engine> engine = world.calls().state()->shared_engine();
    int code = 0;
    {
      auto work = run_rank(rank_main, std::move(world));
      code = sync_wait(work);
    }
    // The other ranks may still need what this one sent.
    static_cast<typename Backend::transport_type&>(*engine).wait_until_all_left(
        transport::engine::clock::time_point::max());
    return code;
  } catch (const std::exception& e) {
    print_failure(o.launch.rank, host, e.what());
  } catch (...) {
    print_failure(o.launch.rank, host, "an exception that is not a std::exception");
  }
  return 1;
}

}  // namespace detail

/// Joins the world that the launcher describes, runs `rank_main` as this process's rank, and leaves.
///
/// Result:  what rank_main returned, 0 if it returns nothing; 1 after an error, which is printed on stderr with rank
///          and host; 2 if the environment is wrong
/// Needs:   rank_main(communicator<Backend>) is a coroutine that returns task<> or task<int>
/// Errors:  none: the exit code tells
/// Cancels: an exception that leaves rank_main aborts the world: every other rank fails with errc::aborted naming this
///          one
/// Cost:    waits at the end until every rank has ended
/// Example: examples/01_hello_all_reduce.cpp
template <backend Backend, class Main>
  requires detail::rank_task<std::invoke_result_t<Main&, communicator<Backend>>>
int run(Main&& rank_main) {
  connect_options o;
  try {
    o = options_from_environment();
  } catch (const std::exception& e) {
    detail::print_failure(-1, {}, e.what());
    return 2;
  }
  for (const std::string& w : o.launch.warnings) detail::print_failure(o.launch.rank, {}, w.c_str());
  return detail::run_connected<Backend>(o, rank_main);
}
template <class Main>
  requires detail::rank_task<std::invoke_result_t<Main&, communicator<cpu>>>
int run(Main&& rank_main) { return run<cpu>(std::forward<Main>(rank_main)); }

}  // namespace cohort
