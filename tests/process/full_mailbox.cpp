// SPDX-License-Identifier: BSL-1.0
// A rank of the same host that reads no letters for a while: its mailbox is full, what is for it waits with the sender,
// and goes on as soon as there is room, also while the sender sleeps.
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cohort/asio.hpp>
#include <cohort/cohort.hpp>
#include <cohort/connect.hpp>
#include <cohort/transport/shm/neighbours.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <poll.h>
#include <sys/resource.h>
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

class word_pipe {
 public:
  word_pipe() { REQUIRE(::pipe(ends_) == 0); }
  word_pipe(const word_pipe&) = delete;
  word_pipe& operator=(const word_pipe&) = delete;
  ~word_pipe() {
    for (const int end : ends_) ::close(end);
  }
  void tell() const {
    const char word = 0;
    harness::expect(::write(ends_[1], &word, 1) == 1, "a word to be told");
  }
  void hear() const {
    char word = 0;
    harness::expect(::read(ends_[0], &word, 1) == 1, "a word to be heard");
  }
  void hear_for(std::chrono::milliseconds most) const {
    pollfd waits{ends_[0], POLLIN, 0};
    (void)::poll(&waits, 1, static_cast<int>(most.count()));
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Words outside the library, within which no rank does anything for another.
struct words {
  word_pipe refused{}, offered{}, through{}, heard{};
};

/// Rank 1 has no part of the window, which the others learn from its letter; theirs, which it waits for, find no room. Rank 0,
/// which has nothing else to say to it, goes on to something else when its broadcast is complete.
task<int> refused_by_one(communicator<cpu> world, const words& say) {
  rlimit limit{};
  harness::expect(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit");
  if (world.rank() == 1) {
    const rlimit none{3, limit.rlim_max};
    harness::expect(::setrlimit(RLIMIT_NOFILE, &none) == 0, "a limit");
  }
  if (world.rank() == 0) {
    say.refused.hear();
    // More than any mailbox has room for.
    auto& beneath = static_cast<transport::sharing_engine&>(world.calls().state()->engine());
    for (int i = 0; i < 5000; ++i) beneath.host_ranks()->ring(1);
  }
  std::vector<int> v(200, world.rank());
  auto op = world.broadcast(v, root{2});
  if (world.rank() == 1) {
    harness::expect(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit");
    say.refused.tell();
    say.offered.hear();
    say.through.hear_for(200ms);  // as long as rank 0 is not, there is nothing to be heard
  }
  if (world.rank() == 0) say.offered.tell();
  co_await op;
  harness::expect(v == std::vector<int>(200, 2), "the root's numbers");
  if (world.rank() == 0) {
    say.through.tell();
    say.heard.hear();
  }
  if (world.rank() == 1) say.heard.tell();
  co_await world.barrier();
  co_return 0;
}

}  // namespace

TEST_CASE("who learns that there is no window goes on when those who wait for its part have it") {
  const words say;
  const auto results = harness::run_ranks(
      3, [&](int) { return run([&](communicator<cpu> world) { return refused_by_one(std::move(world), say); }); });
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}

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
