// SPDX-License-Identifier: BSL-1.0
// Operations, tasks and waiting: when things start, what an await gives, and what dropping one does.
#include <cohort/as_result.hpp>
#include <cohort/run_local.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>
#include <cohort/when_all.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using namespace cohort;
using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<operation<int>> && std::is_nothrow_move_constructible_v<operation<int>>);
static_assert(!std::is_copy_constructible_v<task<int>> && std::is_nothrow_move_constructible_v<task<int>>);
static_assert(awaitable<operation<int>> && awaitable<task<>> && !awaitable<int>);
static_assert(std::is_same_v<await_result_t<operation<float>>, float>);

task<int> answer(bool& started) {
  started = true;
  co_return 42;
}

task<std::unique_ptr<int>> moved_out() { co_return std::make_unique<int>(7); }

task<> fails(const char* why) {
  throw std::runtime_error(why);
  co_return;
}

TEST_CASE("a task starts when it is awaited, and not before") {
  bool started = false;
  auto t = answer(started);
  CHECK_FALSE(started);
  CHECK(sync_wait(t) == 42);
  CHECK(started);
}

TEST_CASE("a task that is never awaited runs nothing and frees its frame") {
  bool started = false;
  { [[maybe_unused]] auto t = answer(started); }
  CHECK_FALSE(started);
}

TEST_CASE("a task gives move-only values and rethrows what left its body") {
  auto t = moved_out();
  CHECK(*sync_wait(t) == 7);
  auto f = fails("as it should");
  CHECK_THROWS_WITH_AS(sync_wait(f), "as it should", std::runtime_error);
}

TEST_CASE("an operation starts at the call: its message is there before the sender awaits") {
  const auto rank_main = [](communicator<inproc> world) -> task<int> {
    std::vector<int> token{world.rank()};
    if (world.rank() == 0) {
      auto sent = world.send(token, to{1});
      CHECK(sent.ready());  // short messages are buffered at once
      co_await sent;
      co_return 0;
    }
    auto got = world.recv(token, from{0});
    const received what = co_await got;
    CHECK(what == received{0, 0, 1});
    CHECK(token.front() == 0);
    co_return 0;
  };
  run_local(2, rank_main);
}

TEST_CASE("operations complete in any order of awaiting") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    std::vector<std::vector<int>> values(20, std::vector<int>(100, world.rank() + 1));
    std::vector<operation<>> flying;
    for (auto& v : values) flying.push_back(world.all_reduce(v, sum{}));
    while (!flying.empty()) {
      operation<> last = std::move(flying.back());
      flying.pop_back();
      co_await last;
    }
    for (const auto& v : values) CHECK(v == std::vector<int>(100, 10));
  };
  run_local(4, rank_main);
}

TEST_CASE("when_all gives every value, in the order of its arguments") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    auto both = when_all(world.all_reduce(world.rank(), sum{}), world.barrier(), world.all_reduce(1.5, max{}));
    const auto [total, nothing, most] = co_await both;
    static_assert(std::is_same_v<decltype(nothing), const std::monostate>);
    CHECK(total == 3);
    CHECK(most == 1.5);
    auto none = when_all(world.barrier(), world.barrier());
    co_await none;
    std::vector<operation<int>> many;
    for (int i = 0; i < 5; ++i) many.push_back(world.all_reduce(i, sum{}));
    auto all = when_all(std::move(many));
    const std::vector<int> totals = co_await all;
    const std::vector<int> expected{0, 3, 6, 9, 12};
    CHECK(totals == expected);
  };
  run_local(3, rank_main);
}

TEST_CASE("when_all waits for all its members and throws the first failure") {
  bool started = false;
  auto all = when_all(fails("first"), answer(started), fails("second"));
  CHECK_THROWS_WITH_AS(sync_wait(all), "first", std::runtime_error);
  CHECK(started);
}

TEST_CASE("as_result gives the value or the code, and never throws") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    auto good = as_result(world.all_reduce(2, sum{}));
    const auto value = co_await good;
    REQUIRE(value.has_value());
    CHECK(*value == 4);
    std::vector<int> wrong(3);
    auto bad = as_result(world.broadcast(wrong, root{5}));
    const auto refused = co_await bad;
    REQUIRE(refused.has_error());
    CHECK(std::error_code(refused.error()) == errc::invalid_argument);
  };
  run_local(2, rank_main);
}

TEST_CASE("an operation dropped in flight aborts its communicator on every rank") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    std::vector<float> v(1000, 1.0F);
    if (world.rank() == 1) {
      { [[maybe_unused]] auto dropped = world.all_reduce(v, sum{}); }
      CHECK(world.failed());
      co_return;
    }
    try {
      co_await world.all_reduce(v, sum{});
      FAIL("the all_reduce cannot have completed");
    } catch (const error& e) {
      CHECK(e.condition() == errc::aborted);
      CHECK(e.peer() == 1);
      CHECK(e.operation() == "all_reduce");
      CHECK(e.sequence() == 0);
      CHECK(std::string(e.what()).find("rank 1 dropped all_reduce #0 before it was complete") != std::string::npos);
    }
    try {
      co_await world.barrier();
      FAIL("a failed communicator takes no calls");
    } catch (const error& e) {
      CHECK(e.condition() == errc::aborted);
      CHECK(std::string(e.what()).find("first cause: rank 1 dropped") != std::string::npos);
    }
  };
  run_local(3, rank_main);
}

TEST_CASE("frames are aligned for every element that an operation keeps as a value") {
  std::vector<void*> blocks;
  for (std::size_t bytes = 1; bytes < 6000; bytes += 97) blocks.push_back(detail::frame_pool::allocate(bytes));
  std::size_t bytes = 1;
  for (void* const block : blocks) {
    CHECK(reinterpret_cast<std::uintptr_t>(block) % detail::frame_pool::most_aligned == 0);
    detail::frame_pool::release(block, bytes);
    bytes += 97;
  }
}

TEST_CASE("a completed operation may be dropped") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    { [[maybe_unused]] auto alone = world.all_reduce(1, sum{}); }
    CHECK_FALSE(world.failed());
    const int two = co_await world.all_reduce(2, sum{});
    CHECK(two == 2);
  };
  run_local(1, rank_main);
}

TEST_CASE("a stop token cancels from another thread, and every rank learns who did it") {
  std::stop_source source;
  std::thread canceller;
  const auto rank_main = [&](communicator<inproc> world) -> task<> {
    std::vector<int> v(10);
    try {
      if (world.rank() == 0) {
        auto op = world.recv(v, from{1}, stop{source.get_token()});
        canceller = std::thread([&source] { source.request_stop(); });
        co_await op;
      } else {
        co_await world.recv(v, from{0});
      }
      FAIL("nobody sent anything");
    } catch (const error& e) {
      CHECK(e.condition() == errc::cancelled);
      CHECK(e.peer() == 0);
    }
  };
  run_local(2, rank_main);
  canceller.join();
}

TEST_CASE("a timeout names who has not arrived") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    if (world.rank() == 2) {
      std::vector<int> never(1);
      try {
        co_await world.recv(never, from{0});
      } catch (const error& e) {
        CHECK(e.condition() == errc::timed_out);
      }
      co_return;
    }
    try {
      co_await world.barrier(timeout{20ms});
      FAIL("rank 2 never came");
    } catch (const error& e) {
      CHECK(e.condition() == errc::timed_out);
      CHECK(e.peer() == 2);
      CHECK(e.elapsed() >= 10ms);  // the other one may have called it before, and its deadline ends both
      CHECK(std::string(e.what()).find("not arrived: rank 2 has not called anything yet") != std::string::npos);
    }
  };
  run_local(3, rank_main);
}

TEST_CASE("wait drives a rank that has a thread of its own") {
  const auto hub = std::make_shared<transport::inproc_hub>(4, transport::inproc_hub::threading::thread_per_rank);
  std::vector<std::thread> threads;
  std::vector<int> sums(4);
  for (int r = 0; r < 4; ++r) {
    threads.emplace_back([&, r] {
      const communicator<inproc> world = make_local_world(hub, r);
      for (int i = 0; i < 100; ++i) sums[static_cast<std::size_t>(r)] += world.all_reduce(r, sum{}).wait();
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(sums == std::vector<int>(4, 600));
}

// An executor that counts, and a coroutine type whose promise has one.
struct counting_executor {
  int* count;
  template <class F>
  void execute(F f) const {
    ++*count;
    f();
  }
};
struct with_executor {
  struct promise_type {
    int* count;
    explicit promise_type(int& c, communicator<inproc>&) noexcept : count(&c) {}
    with_executor get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { FAIL("unexpected exception"); }
    counting_executor get_executor() const noexcept { return {count}; }
  };
};
with_executor waits_on_executor(int&, communicator<inproc>& world) { co_await world.barrier(); }

TEST_CASE("an awaiter with an executor wakes on it") {
  int resumed = 0;
  const auto rank_main = [&](communicator<inproc> world) -> task<> {
    if (world.rank() == 0) waits_on_executor(resumed, world);
    if (world.rank() == 1) co_await world.barrier();
    co_await world.barrier();
  };
  run_local(2, rank_main);
  CHECK(resumed == 1);
}

TEST_CASE("an exception that leaves one rank aborts the others and comes out of run_local") {
  const auto rank_main = [](communicator<inproc> world) -> task<> {
    if (world.rank() == 1) throw std::runtime_error("rank one is done");
    try {
      co_await world.barrier();
      FAIL("rank 1 never came");
    } catch (const error& e) {
      CHECK(e.condition() == errc::aborted);
      CHECK(std::string(e.what()).find("rank 1 ended with an exception: rank one is done") != std::string::npos);
    }
  };
  CHECK_THROWS_WITH_AS(run_local(3, rank_main), "rank one is done", std::runtime_error);
}

}  // namespace
