// SPDX-License-Identifier: BSL-1.0
// run_local: n ranks inside this process, no network. The quickest way to try something, and what most tests use.
#pragma once

#include <cohort/backend/inproc.hpp>
#include <cohort/communicator.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>
#include <cohort/when_all.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// The world of one rank of an in-process hub.
[[nodiscard]] communicator<inproc> make_local_world(const std::shared_ptr<transport::inproc_hub>& hub, int rank);

namespace detail {

/// What a rank's main function may return.
template <class Task>
concept rank_task = awaitable<Task> &&
    (std::is_void_v<await_result_t<Task>> || std::is_same_v<await_result_t<Task>, int>);

/// The worlds of n ranks that take turns on one thread.
[[nodiscard]] std::vector<communicator<inproc>> make_local_worlds(int n);

/// Unless the world has failed before: tells the other ranks what has ended this one.
void abort_world(const group& world, const std::exception_ptr& failure);

/// Runs one rank's main function; an exception that leaves it aborts the world, so that no other rank waits for it.
template <class Main, class Communicator>
task<int> run_rank(Main& rank_main, Communicator world) {
  const std::shared_ptr<group> state = world.calls().state();
  std::exception_ptr failure;
  int code = 0;
  try {
    if constexpr (std::is_void_v<await_result_t<decltype(rank_main(std::move(world)))>>) {
      auto work = rank_main(std::move(world));
      co_await work;
    } else {
      auto work = rank_main(std::move(world));
      code = co_await work;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) abort_world(*state, failure);
  if (failure) std::rethrow_exception(failure);
  co_return code;
}

}  // namespace detail

/// Runs `rank_main` as n ranks that take turns on this thread.
///
/// Result:   nothing, or a vector with the int that each rank returned
/// Needs:    rank_main(communicator<inproc>) is a coroutine that returns task<> or task<int>; it waits with co_await,
///           as a blocking wait() in one rank would hold up all the others
/// Errors:   the first exception that leaves a rank, when all have ended
/// Lifetime: rank_main is used by reference until the end
/// Example:  examples/17_local_world.cpp
template <class Main>
  requires detail::rank_task<std::invoke_result_t<Main&, communicator<inproc>>> std::vector<int> run_local(
      int n, Main&& rank_main) {
    std::vector<communicator<inproc>> worlds = detail::make_local_worlds(n);
    std::vector<task<int>> ranks;
    for (communicator<inproc>& world : worlds) ranks.push_back(detail::run_rank(rank_main, std::move(world)));
    worlds.clear();
    auto all = when_all(std::move(ranks));
    return sync_wait(all);
  }

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/run_local.hpp>
#endif
