// SPDX-License-Identifier: BSL-1.0
// What every coroutine library is given: the same body, whose return type is that library's task.
#pragma once

#include <cohort/backend/inproc.hpp>
#include <cohort/communicator.hpp>
#include <cohort/error.hpp>
#include <cohort/ops.hpp>
#include <cohort/run_local.hpp>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace interop {

using world_type = cohort::communicator<cohort::inproc>;

/// Result: 4 if the buffer, the value, the message and the error of a disagreement were right, else fewer
template <class Task>
Task conversation(const world_type& world) {
  int right = 0;
  std::vector<double> buffer{1.0, static_cast<double>(world.rank())};
  co_await world.all_reduce(buffer, cohort::sum{});
  if (buffer == std::vector{2.0, 1.0}) ++right;

  // In flight together, awaited in the other order. Moved, as asio::awaitable takes no lvalues.
  const std::vector<int> mine{world.rank()};
  std::vector<int> letter{-1};
  auto sending = world.send(mine, cohort::to{1 - world.rank()});
  auto receiving = world.recv(letter, cohort::from{1 - world.rank()});
  auto total = world.all_reduce(world.rank() + 1, cohort::sum{});
  if (co_await std::move(total) == 3) ++right;
  co_await std::move(receiving);
  co_await std::move(sending);
  if (letter.front() == 1 - world.rank()) ++right;

  try {
    if (world.rank() == 0) {
      (void)co_await world.all_reduce(1, cohort::sum{});
    } else {
      co_await world.barrier();
    }
  } catch (const cohort::error& e) {
    if (e.condition() == cohort::errc::mismatch) ++right;
  }
  co_return right;
}

/// Two ranks that take turns on this thread.
struct two_ranks {
  std::shared_ptr<cohort::transport::inproc_hub> hub =
      std::make_shared<cohort::transport::inproc_hub>(2, cohort::transport::inproc_hub::threading::one_thread);
  world_type first = cohort::make_local_world(hub, 0);
  world_type second = cohort::make_local_world(hub, 1);

  /// Moves both until `done()`; `also()` moves whatever else there is.
  template <class Done, class Also>
  void drive_until(const Done& done, const Also& also) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!done()) {
      first.poll();
      second.poll();
      also();
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("nothing moves any more");
    }
  }
  template <class Done>
  void drive_until(const Done& done) const {
    drive_until(done, [] {});
  }
};

}  // namespace interop
