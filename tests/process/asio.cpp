// SPDX-License-Identifier: BSL-1.0
// Operations as Asio asynchronous operations, on the caller's own io_context, between real processes.
#include "../support/processes.hpp"
#include "asio_support.hpp"

#include <cohort/asio.hpp>
#include <cohort/connect.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace cohort;
using namespace std::chrono_literals;
namespace asio = boost::asio;
using harness::check_all;
using harness::on_io_context;

asio::awaitable<int> every_token(communicator<cpu> world) {
  const int n = world.size();
  std::vector<float> v(1000, 1.0F);
  co_await world.all_reduce(v, sum{});
  CO_REQUIRE_RANK(v.back() == static_cast<float>(n));
  const int plain = co_await world.all_reduce(1, sum{});
  CO_REQUIRE_RANK(plain == n);
  auto started = world.all_reduce(2, sum{});
  const int later = co_await std::move(started);
  CO_REQUIRE_RANK(later == 2 * n);
  const int named = co_await world.all_reduce(3, sum{})(asio::use_awaitable);
  CO_REQUIRE_RANK(named == 3 * n);
  const auto [failure, value] = co_await world.all_reduce(4, sum{})(asio::as_tuple(asio::use_awaitable));
  CO_REQUIRE_RANK(!failure && value == 4 * n);
  auto packed = world.all_reduce(5, sum{})(asio::deferred);
  const int unpacked = co_await std::move(packed)(asio::use_awaitable);
  CO_REQUIRE_RANK(unpacked == 5 * n);
  std::vector<double> big(200000, 1.0);
  co_await world.all_reduce(big, sum{});
  CO_REQUIRE_RANK(big.front() == n && big.back() == n);
  const std::vector<int> ranks = co_await world.all_gather(world.rank());
  CO_REQUIRE_RANK(ranks.back() == n - 1);
  co_return 0;
}

TEST_CASE("inside asio::awaitable an operation is awaited as it is, and takes every token") {
  for (const int n : {1, 2, 3}) {
    CAPTURE(n);
    check_all(harness::run_ranks(n, [](int) { return on_io_context(&every_token); }));
  }
}

asio::awaitable<int> with_operators(communicator<cpu> world) {
  using namespace asio::experimental::awaitable_operators;
  auto first = world.all_reduce(1, sum{})(asio::use_awaitable);
  auto second = world.all_reduce(2, sum{})(asio::use_awaitable);
  const auto [a, b] = co_await (std::move(first) && std::move(second));
  CO_REQUIRE_RANK(a == world.size() && b == 2 * world.size());
  co_return 0;
}

TEST_CASE("awaitable operators combine operations") {
  check_all(harness::run_ranks(2, [](int) { return on_io_context(&with_operators); }));
}

TEST_CASE("a callback gets the value on the io_context that is run, a future in any thread") {
  check_all(harness::run_ranks(3, [](int) {
    asio::io_context io;
    const communicator<cpu> world = connect<cpu>(io);
    int seen = 0;
    bool inside_initiation = true;
    std::vector<int> data(10, 1);
    world.all_reduce(data, sum{})([&](std::exception_ptr failure) { seen += !failure && !inside_initiation ? 1 : 100; });
    world.all_reduce(7, max{})([&](std::exception_ptr failure, int most) { seen += !failure && most == 7 ? 1 : 100; });
    std::future<int> total = world.all_reduce(1, sum{})(asio::use_future);
    inside_initiation = false;
    std::thread runner([&io] {
      // The connections keep the context at work for as long as the world lives.
      while (!io.stopped()) io.run_one();
    });
    const int sum_of_ones = total.get();
    io.stop();
    runner.join();
    REQUIRE_RANK(sum_of_ones == 3);
    REQUIRE_RANK(seen == 2);
    REQUIRE_RANK(data == std::vector<int>(10, 3));
    return 0;
  }));
}

asio::awaitable<int> errors_keep_their_text(communicator<cpu> world) {
  std::vector<int> data(world.rank() == 0 ? 4 : 5);
  try {
    co_await world.all_reduce(data, sum{});
  } catch (const error& e) {
    CO_REQUIRE_RANK(e.condition() == errc::mismatch);
    CO_REQUIRE_RANK(std::string(e.what()).find("all_reduce(4 x int32, sum)") != std::string::npos);
    CO_REQUIRE_RANK(std::string(e.what()).find("all_reduce(5 x int32, sum)") != std::string::npos);
    co_return 0;
  }
  co_return 1;
}

TEST_CASE("an error inside asio::awaitable is a cohort::error with its whole text") {
  check_all(harness::run_ranks(2, [](int) { return on_io_context(&errors_keep_their_text); }));
}

TEST_CASE("a cancellation slot cancels, and the other ranks learn who did") {
  check_all(harness::run_ranks(2, [](int rank) {
    asio::io_context io;
    const communicator<cpu> world = connect<cpu>(io);
    asio::cancellation_signal signal;
    errc seen{};
    int culprit = -1;
    std::vector<int> data(1);
    const auto done = [&](std::exception_ptr failure, received) {
      try {
        if (failure) std::rethrow_exception(failure);
      } catch (const error& e) {
        seen = e.condition();
        culprit = e.peer();
      }
      io.stop();
    };
    world.recv(data, from{1 - rank})(asio::bind_cancellation_slot(signal.slot(), done));
    if (rank == 0) asio::post(io, [&signal] { signal.emit(asio::cancellation_type::terminal); });
    io.run();
    REQUIRE_RANK(seen == errc::cancelled);
    REQUIRE_RANK(culprit == 0);
    return 0;
  }));
}

asio::awaitable<int> timed(communicator<cpu> world) {
  if (world.rank() == 1) {
    // Waits for the verdict of the others.
    std::vector<int> never(1);
    try {
      co_await world.recv(never, from{0});
    } catch (const error& e) {
      CO_REQUIRE_RANK(e.condition() == errc::timed_out);
      co_return 0;
    }
    co_return 1;
  }
  try {
    co_await world.barrier(timeout{100ms});
  } catch (const error& e) {
    CO_REQUIRE_RANK(e.condition() == errc::timed_out);
    CO_REQUIRE_RANK(e.peer() == 1);
    co_return 0;
  }
  co_return 1;
}

TEST_CASE("deadlines pass on an io_context that nothing else keeps busy") {
  check_all(harness::run_ranks(2, [](int) { return on_io_context(&timed); }));
}

// A turn looks at the reactor now and then, where the caller's handlers run, and what they complete.
TEST_CASE("a handler that runs within a turn lets go of the communicator") {
  for (const int n : {1, 2}) {
    CAPTURE(n);
    check_all(harness::run_ranks(n, [](int) {
      asio::io_context io;
      std::optional<communicator<cpu>> world(connect<cpu>(io));
      world->barrier().wait();
      asio::post(io, [&world] { world.reset(); });
      while (world) world->poll();
      return 0;
    }));
  }
}

TEST_CASE("what is resumed when a handler stops an operation within a turn lets go of the communicator") {
  for (const int n : {1, 2}) {
    CAPTURE(n);
    check_all(harness::run_ranks(n, [n](int rank) {
      asio::io_context io;
      std::optional<communicator<cpu>> world(connect<cpu>(io));
      world->barrier().wait();
      std::vector<int> never(1);
      std::stop_source source;
      errc seen{};
      asio::co_spawn(
          io,
          [&]() -> asio::awaitable<void> {
            try {
              auto waiting = world->recv(never, from{(rank + 1) % n}, stop{source.get_token()});
              co_await std::move(waiting);
            } catch (const error& e) {
              seen = e.condition();
            }
            world.reset();
          },
          asio::detached);
      // Each asks for a turn. The first turn that looks at the reactor finds all that are left there, and the stop.
      int left = 500;
      std::function<void()> ask = [&] {
        if (--left == 0) {
          source.request_stop();
          return;
        }
        world->engine().request_attention();
        asio::post(io, ask);
      };
      asio::post(io, ask);
      while (world) io.run_one();
      REQUIRE_RANK(seen == errc::cancelled || (n > 1 && seen == errc::peer_lost));
      return 0;
    }));
  }
}

TEST_CASE("a handler without an executor is called by who runs the io_context, also when nothing had to be waited for") {
  for (const int n : {1, 2}) {
    CAPTURE(n);
    check_all(harness::run_ranks(n, [n](int rank) {
      asio::io_context io;
      const communicator<cpu> world = connect<cpu>(io);
      const auto here = std::this_thread::get_id();
      const std::vector<int> one(1);
      bool inside_a_call = false;
      int called = 0;
      int elsewhere = 0;
      const auto note = [&] {
        ++called;
        if (std::this_thread::get_id() != here || inside_a_call) ++elsewhere;
      };
      for (int i = 0; i < 20; ++i) {
        world.barrier().wait();
        // Of two ranks the second finds that the first is there already.
        if (n == 2 && rank == 1) std::this_thread::sleep_for(10ms);
        inside_a_call = true;
        world.all_reduce(1, sum{})([&](std::exception_ptr, int) { note(); });
        world.send(one, to{world.size()})([&](std::exception_ptr) { note(); });  // refused
        inside_a_call = false;
        io.restart();
        while (called < 2 * (i + 1)) io.run_one_for(10s);
      }
      REQUIRE_RANK(called == 40);
      REQUIRE_RANK(elsewhere == 0);
      return 0;
    }));
  }
}

// A chain of handlers, each of which asks for a turn: the first turn that looks at the reactor runs what is left of them.
// In the middle of that, `what` happens.
void within_a_turn(asio::io_context& io, const communicator<cpu>& world, std::function<void()> what) {
  auto left = std::make_shared<int>(500);
  auto ask = std::make_shared<std::function<void()>>();
  *ask = [&io, &world, what = std::move(what), left, again = std::weak_ptr(ask)] {
    if (--*left == 0) return;
    world.engine().request_attention();
    asio::post(io, [ask = again.lock()] { (*ask)(); });
    if (*left == 250) what();
  };
  asio::post(io, [ask] { (*ask)(); });
}

TEST_CASE("a deadline that passes within a turn is noticed") {
  check_all(harness::run_ranks(1, [](int) {
    asio::io_context io;
    const communicator<cpu> world = connect<cpu>(io);
    std::vector<int> never(1);
    errc seen{};
    const auto started = std::chrono::steady_clock::now();
    world.recv(never, from{0}, timeout{200ms})([&](std::exception_ptr failure, received) {
      try {
        if (failure) std::rethrow_exception(failure);
      } catch (const error& e) {
        seen = e.condition();
      }
      io.stop();
    });
    within_a_turn(io, world, [started] {
      while (std::chrono::steady_clock::now() - started < 250ms) {  // computes
      }
    });
    asio::steady_timer given_up(io, 20s);
    given_up.async_wait([&io](const boost::system::error_code&) { io.stop(); });
    io.run();
    REQUIRE_RANK(seen == errc::timed_out);
    return 0;
  }));
}

TEST_CASE("a handler of the caller's that throws within a turn leaves the world as it was") {
  check_all(harness::run_ranks(2, [](int rank) {
    asio::io_context io;
    const communicator<cpu> world = connect<cpu>(io);
    world.barrier().wait();
    // Rank 0 waits already when its handler throws, and starts nothing after it: what rank 1 sends must wake it.
    asio::steady_timer later(io, rank == 0 ? 0ms : 300ms);
    bool done = false;
    int total = 0;
    later.async_wait([&](const boost::system::error_code&) {
      world.all_reduce(1, sum{})([&](std::exception_ptr failure, int value) {
        done = !failure;
        total = value;
        io.stop();
      });
      if (rank == 0) within_a_turn(io, world, [] { throw std::runtime_error("of the caller's"); });
    });
    asio::steady_timer given_up(io, 20s);
    given_up.async_wait([&io](const boost::system::error_code&) { io.stop(); });
    int thrown = 0;
    while (!io.stopped()) {
      try {
        io.run();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
    }
    REQUIRE_RANK(thrown == (rank == 0 ? 1 : 0));
    REQUIRE_RANK(done && total == 2);
    return 0;
  }));
}

}  // namespace
