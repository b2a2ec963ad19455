// SPDX-License-Identifier: BSL-1.0
// A rank of the same host that reads no letters for a while: its mailbox is full, what is for it waits with the sender,
// and goes on as soon as there is room, also while the sender sleeps.
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cohort/asio.hpp>
#include <cohort/cohort.hpp>
#include <cohort/connect.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <thread>
#include <utility>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t count = 16384;

/// Each of the letters to the other rank has a buffer enclosed; a mailbox has room for a few.
constexpr std::size_t few = 2;
constexpr std::size_t many = 60;
struct buffers {
  buffers(const communicator<cpu>& world, std::size_t letters) : all(letters, std::vector<int>(count, 1)) {
    for (std::vector<int>& each : all) registered.push_back(world.register_memory(each));
  }
  std::vector<std::vector<int>> all;
  std::vector<registration> registered{};
};

using times = std::vector<std::chrono::steady_clock::duration>;
std::chrono::steady_clock::duration median(times& t) {
  std::sort(t.begin(), t.end());
  return t[t.size() / 2];
}

// Of both kinds of coroutine, so that the same rank runs on cohort's io_context and on a caller's.
template <class Awaitable>
Awaitable meets_late(communicator<cpu> world) {
  times with_few;
  times with_many;
  for (int round = 0; round < 5; ++round) {
    for (const std::size_t letters : {few, many}) {
      co_await world.barrier();
      const auto began = std::chrono::steady_clock::now();
      if (world.rank() == 1) std::this_thread::sleep_for(50ms);  // busy with something else
      buffers mine(world, letters);
      co_await world.all_reduce(mine.all.back(), sum{});
      (letters == few ? with_few : with_many).push_back(std::chrono::steady_clock::now() - began);
      for (const int x : mine.all.back()) harness::expect(x == world.size(), "the sum in a registered buffer");
    }
  }
  // Ranks that sleep look at everything anew once a second: letters that moved only then took a hundred times as long.
  harness::expect(median(with_many) < 10 * median(with_few), "letters go on as soon as there is room for them");
  co_return 0;
}

int on_own_context(int) {
  return run([](communicator<cpu> world) { return meets_late<task<int>>(std::move(world)); });
}

int on_callers_context(int) {
  boost::asio::io_context io;
  std::future<int> code;
  {
    auto world = connect<cpu>(io);
    code =
        boost::asio::co_spawn(io, meets_late<boost::asio::awaitable<int>>(std::move(world)), boost::asio::use_future);
  }
  io.run();
  return code.get();
}

/// Rank 1 calls nothing at all until the pair of the others is through.
task<int> others_go_on(communicator<cpu> world, int wait_here, int tell_there) {
  auto pair = co_await world.subgroup(ranks{0, 2});
  co_await world.barrier();
  char word = 0;
  if (world.rank() == 1) {
    harness::expect(::read(wait_here, &word, 1) == 1, "a word from rank 0");
  } else {
    buffers mine(world, many);
    co_await pair.all_reduce(mine.all.back(), sum{});
    for (const int x : mine.all.back()) harness::expect(x == 2, "the pair's sum");
    if (world.rank() == 0) harness::expect(::write(tell_there, &word, 1) == 1, "a word to rank 1");
  }
  co_await world.barrier();
  co_return 0;
}

}  // namespace

TEST_CASE("a full mailbox holds up nobody else") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto results = harness::run_ranks(3, [&](int) {
    return run([&](communicator<cpu> world) { return others_go_on(std::move(world), ends[0], ends[1]); });
  });
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("letters to a rank whose mailbox is full wait, and go on while their sender sleeps") {
  for (const auto rank_main : {on_own_context, on_callers_context}) {
    for (const auto& r : harness::run_ranks(2, rank_main)) {
      INFO(harness::describe(r));
      CHECK(r.ok());
    }
  }
}
