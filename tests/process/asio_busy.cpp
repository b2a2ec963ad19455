// SPDX-License-Identifier: BSL-1.0
// A rank on the caller's own io_context that computes in a handler: what came meanwhile, and what could not leave, is seen to
// afterwards.
#include "../support/one_core.hpp"
#include "../support/processes.hpp"
#include "asio_support.hpp"
#include "fault_support.hpp"

#include <cohort/asio.hpp>
#include <cohort/connect.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <future>
#include <optional>
#include <span>
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

/// A burst is there before its receiver looks: one sign tells of all of it.
asio::awaitable<int> read_burst(communicator<cpu> world, std::size_t messages, std::size_t bytes, bool from_anybody) {
  const int none = 0;
  if (world.rank() == 0) {
    int go = 0;
    co_await world.recv(std::span(&go, 1), from{1}, tag{1});
    const std::vector<std::byte> out(bytes);
    for (std::size_t i = 0; i < messages; ++i) co_await world.send(out, to{1}, tag{2});
    co_await world.recv(std::span(&go, 1), from{1}, tag{3}, timeout{10s});
    co_return 0;
  }
  std::vector<std::vector<std::byte>> in(messages, std::vector<std::byte>(bytes));
  std::vector<operation<received>> receives;
  if (!from_anybody) {
    for (auto& each : in) receives.push_back(world.recv(each, from{0}, tag{2}));
  }
  co_await world.send(std::span(&none, 1), to{0}, tag{1});
  std::this_thread::sleep_for(100ms);  // it computes
  for (auto& each : receives) co_await std::move(each);
  for (std::size_t i = 0; from_anybody && i < messages; ++i) co_await world.recv(in[i], from_any, tag{2});
  co_await world.send(std::span(&none, 1), to{0}, tag{3});
  co_return 0;
}

TEST_CASE("a burst of messages that came while nobody looked is read to its end") {
  struct burst {
    std::size_t messages;
    std::size_t bytes;
    bool from_anybody;
  };
  for (const burst b : {burst{60, 1000, false}, burst{60, 1000, true}, burst{400, 64, false}}) {
    CAPTURE(b.messages);
    CAPTURE(b.from_anybody);
    check_all(harness::run_ranks(2, [b](int) {
      asio::io_context io;
      auto whole = read_burst(connect<cpu>(io), b.messages, b.bytes, b.from_anybody);
      std::future<int> code = asio::co_spawn(io, std::move(whole), asio::use_future);
      io.run();
      return code.get();
    }));
  }
}

/// How often rank 1 has asked for a long message, and rank 0 has seen that.
struct long_send {
  std::atomic<int> asked{0};
  std::atomic<int> seen{0};
};
enum class seen_by { a_turn, another_send };

void wait_for(const std::atomic<int>& number, int value) {
  while (number.load() < value) ::sched_yield();
}

// Rank 0 does not come back to its io_context before its message has been asked for, and reads the question elsewhere: then
// as much of the message leaves as the socket takes, and the io_context has to send the rest.
asio::awaitable<int> sends_long(communicator<cpu> world, const faults::shared<long_send>& how_far, seen_by how) {
  std::vector<int> data(std::size_t{8} << 20);
  std::vector<int> other(std::size_t{100000});
  std::vector<int> little(1);
  co_await world.all_reduce(1, sum{});
  for (int round = 1; round <= 3; ++round) {
    if (world.rank() == 0) {
      data.assign(data.size(), round);
      auto sending = world.send(data, to{1}, tag{1}, timeout{10s});
      co_await world.send(little, to{1}, tag{2});
      wait_for(how_far->asked, round);
      std::optional<operation<>> another;
      if (how == seen_by::a_turn) {
        world.poll();
      } else {
        another.emplace(world.send(other, to{1}, tag{3}, timeout{10s}));
      }
      how_far->seen = round;
      co_await std::move(sending);
      if (another) co_await std::move(*another);
    } else {
      data.assign(data.size(), 0);
      // Behind it all is here that comes with the announcement: no credit is given back later.
      co_await world.recv(little, from{0}, tag{2});
      auto receiving = world.recv(data, from{0}, tag{1}, timeout{10s});
      how_far->asked = round;
      wait_for(how_far->seen, round);
      co_await std::move(receiving);
      if (how == seen_by::another_send) co_await world.recv(other, from{0}, tag{3}, timeout{10s});
      CO_REQUIRE_RANK(data.front() == round && data.back() == round);
    }
  }
  co_return 0;
}

TEST_CASE("a long message that is asked for within a turn, or within another send, is sent to its end") {
  for (const seen_by how : {seen_by::a_turn, seen_by::another_send}) {
    for (const std::string stripes : {"1", "3"}) {
      CAPTURE(static_cast<int>(how));
      CAPTURE(stripes);
      const faults::shared<long_send> how_far;
      harness::rank_options options;
      options.environment = {{"COHORT_SHM", "0"}, {"COHORT_TCP_STRIPES", stripes}};
      const auto rank_main = [&](int) {
        // Between two long sends a rank reads where there are more ranks than cores.
        if (how == seen_by::another_send) harness::on_first_core_only();
        return on_io_context([&](communicator<cpu> world) { return sends_long(std::move(world), how_far, how); });
      };
      check_all(harness::run_ranks(2, rank_main, options));
    }
  }
}

}  // namespace
