// SPDX-License-Identifier: BSL-1.0
// The same operations awaited in the coroutines of several libraries, on two ranks of one thread.
#include "conversation.hpp"
#include "cppcoro_style.hpp"
#include "libcoro_style.hpp"

#include <cohort/asio.hpp>
#include <cohort/task.hpp>

#include <doctest/doctest.h>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <vector>

using namespace interop;

namespace {

// Runs a task that somebody awaits, from a coroutine that nobody does.
template <class T>
struct running {
  struct promise_type {
    running get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

template <class Task>
running<Task> start(Task work, int& right, int& ended) {
  try {
    right = co_await std::move(work);
  } catch (...) {
    right = -1;
  }
  ++ended;
}

template <class Task>
void both_ranks_converse() {
  const two_ranks worlds;
  std::vector<int> right(2);
  int ended = 0;
  start(conversation<Task>(worlds.first), right[0], ended);
  start(conversation<Task>(worlds.second), right[1], ended);
  worlds.drive_until([&] { return ended == 2; });
  CHECK(right == std::vector{4, 4});
}

bool is_ready(const std::future<int>& f) { return f.wait_for(std::chrono::seconds{0}) == std::future_status::ready; }

}  // namespace

TEST_CASE("cohort::task awaits operations") { both_ranks_converse<cohort::task<int>>(); }

TEST_CASE("a task as in cppcoro awaits operations") { both_ranks_converse<cppcoro_style::task<int>>(); }

TEST_CASE("a task as in libcoro awaits operations, and its waits take them as they are") {
  const two_ranks worlds;
  const auto first = conversation<libcoro_style::waiting<int>>(worlds.first);
  const auto second = conversation<libcoro_style::waiting<int>>(worlds.second);
  first.resume();
  second.resume();
  worlds.drive_until([&] { return first.is_ready() && second.is_ready(); });
  CHECK(first.result() == 4);
  CHECK(second.result() == 4);

  using of_value = cohort::operation<int>;
  static_assert(libcoro_style::awaitable<of_value> && libcoro_style::awaitable<of_value&>);
  static_assert(libcoro_style::awaitable<cohort::operation<void>&>);
  static_assert(libcoro_style::awaiter<decltype(libcoro_style::get_awaiter(std::declval<of_value&>()))>);
  static_assert(!libcoro_style::awaitable<int>);
  const two_ranks others;
  of_value a = others.first.all_reduce(1, cohort::sum{});
  of_value b = others.second.all_reduce(2, cohort::sum{});
  const auto wait_a = libcoro_style::wait_for<int>(a);
  const auto wait_b = libcoro_style::wait_for<int>(b);
  wait_a.resume();
  wait_b.resume();
  others.drive_until([&] { return wait_a.is_ready() && wait_b.is_ready(); });
  CHECK(wait_a.result() == 3);
  CHECK(wait_b.result() == 3);
}

TEST_CASE("asio::awaitable awaits operations without a token") {
  const two_ranks worlds;
  boost::asio::io_context io;
  using task = boost::asio::awaitable<int>;
  std::future<int> first = boost::asio::co_spawn(io, conversation<task>(worlds.first), boost::asio::use_future);
  std::future<int> second = boost::asio::co_spawn(io, conversation<task>(worlds.second), boost::asio::use_future);
  worlds.drive_until([&] { return is_ready(first) && is_ready(second); },
                     [&io] {
                       io.restart();
                       io.poll();
                     });
  CHECK(first.get() == 4);
  CHECK(second.get() == 4);
}

TEST_CASE("use_future gives values and errors") {
  const two_ranks worlds;
  std::future<int> first = worlds.first.all_reduce(1, cohort::sum{})(boost::asio::use_future);
  std::future<int> second = worlds.second.all_reduce(2, cohort::sum{})(boost::asio::use_future);
  worlds.drive_until([&] { return is_ready(first) && is_ready(second); });
  CHECK(first.get() == 3);
  CHECK(second.get() == 3);

  std::future<int> sums = worlds.first.all_reduce(1, cohort::sum{})(boost::asio::use_future);
  std::future<int> largest = worlds.second.all_reduce(1, cohort::max{})(boost::asio::use_future);
  worlds.drive_until([&] { return is_ready(sums) && is_ready(largest); });
  CHECK_THROWS_AS(sums.get(), cohort::error);
  CHECK_THROWS_AS(largest.get(), cohort::error);
}
