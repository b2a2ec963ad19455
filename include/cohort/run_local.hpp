// SPDX-License-Identifier: BSL-1.0
// run_local: n ranks inside this process, no network. The quickest way to try something, and what most tests use.
#pragma once

#include <cohort/backend/inproc.hpp>
#include <cohort/communicator.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>
#include <cohort/when_all.hpp>

#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// The world of one rank of an in-process hub.
[[nodiscard]] inline communicator<inproc> make_local_world(const std::shared_ptr<transport::inproc_hub>& hub,
                                                           int rank) {
  std::vector<int> members(static_cast<std::size_t>(hub->size()));
  for (int r = 0; r < hub->size(); ++r) members[static_cast<std::size_t>(r)] = r;
  auto endpoint = std::make_shared<transport::inproc_endpoint>(hub, rank);
  return communicator<inproc>(std::make_shared<group>(std::move(endpoint), 0, "world", std::move(members), rank));
}

namespace detail {

/// What a rank's main function may return.
template <class Task>
concept rank_task = awaitable<Task> &&
    (std::is_void_v<await_result_t<Task>> || std::is_same_v<await_result_t<Task>, int>);

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
  if (failure && !state->failure()) {
    std::string text = "rank " + std::to_string(state->rank()) + " ended with an exception";
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      text += std::string{": "} + e.what();
    } catch (...) {
      text += " that is not a std::exception";
    }
    state->engine().report_mismatch(*state, -1, state->engine().rank(), errc::aborted, std::move(text));
  }
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
    if (n < 1) throw error(errc::invalid_argument, "run_local: " + std::to_string(n) + " ranks: expected at least 1");
    const auto hub = std::make_shared<transport::inproc_hub>(n, transport::inproc_hub::threading::one_thread);
    std::vector<communicator<inproc>> worlds;
    for (int r = 0; r < n; ++r) worlds.push_back(make_local_world(hub, r));
    std::vector<task<int>> ranks;
    for (communicator<inproc>& world : worlds) ranks.push_back(detail::run_rank(rank_main, std::move(world)));
    worlds.clear();
    auto all = when_all(std::move(ranks));
    return sync_wait(all);
  }

}  // namespace cohort
