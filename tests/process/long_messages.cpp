// SPDX-License-Identifier: BSL-1.0
// Long messages between ranks of one host, which both ends copy part by part: every length and cut, many at a time, a
// sender that does something else or is stopped in the middle, and either end giving up.
#include "../support/forbid_copying.hpp"
#include "../support/processes.hpp"
#include "../support/sanitizer.hpp"
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/asio.hpp>
#include <cohort/cohort.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace cohort;

namespace {

using world_type = communicator<cpu>;

/// Bytes that tell where they were cut or which message they are of.
COHORT_TEST_NOT_SANITIZED void put_values(std::uint32_t* at, std::size_t count, std::uint32_t of) {
  for (std::size_t i = 0; i < count; ++i) at[i] = of * 0x9e3779b9U + static_cast<std::uint32_t>(i);
}
std::vector<std::uint32_t> values(std::size_t count, std::uint32_t of) {
  std::vector<std::uint32_t> v(count);
  put_values(v.data(), count, of);
  return v;
}

template <class Body>
std::vector<harness::rank_result> on_ranks(int n, Body body, const harness::rank_options& options = {}) {
  auto results = harness::run_ranks(
      n, [body](int) { return run(body); }, options);
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
  return results;
}

/// However long messages are copied, and as is faster.
constexpr std::array<const char*, 4> ways{"0", "1", "both", "auto"};

/// In two processes, with a way of copying.
template <class Body>
void on_two(const char* way, Body body) {
  CAPTURE(way);
  harness::rank_options options;
  options.environment = {{"COHORT_SINGLE_COPY", way}};
  on_ranks(2, std::move(body), options);
}

/// About the lengths at which something changes: what is sent at once, a part, the ring, what is read at a time.
task<int> all_lengths(world_type world) {
  const int other = 1 - world.rank();
  const auto own = static_cast<std::uint32_t>(world.rank());
  const auto theirs = static_cast<std::uint32_t>(other);
  for (const std::size_t bytes : {16384U, 16388U, 65536U, 65540U, 81920U, 131072U, 262096U, 262144U, 262192U, 1048576U,
                                  1052676U, 4194304U, 5000004U}) {
    const std::size_t n = bytes / sizeof(std::uint32_t);
    const auto out = values(n, own);
    std::vector<std::uint32_t> in(n + 5, 7);
    // There and back, with more room than is needed; then both ways at once.
    for (int turn = 0; turn < 2; ++turn) {
      if (world.rank() == turn) {
        co_await world.send(out, to{other});
      } else {
        const received got = co_await world.recv(in, from{other});
        harness::expect(got.count == n, "its length");
        const auto expected = values(n, theirs);
        harness::expect(std::equal(expected.begin(), expected.end(), in.begin()), "its bytes");
        harness::expect(in[n] == 7 && in[n + 4] == 7, "nothing behind it");
      }
    }
    in.assign(n, 0);
    co_await world.exchange(out, to{other}, in, from{other}, tag{1});
    harness::expect(in == values(n, theirs), "both ways at once");
  }
  co_return 0;
}

/// More at a time than there are cursors, asked for in another order than they were sent.
task<int> many_at_once(world_type world) {
  constexpr std::size_t messages = 200;
  constexpr std::size_t n = 30000;
  const int other = 1 - world.rank();
  std::vector<std::vector<std::uint32_t>> out;
  std::vector<std::vector<std::uint32_t>> in(messages, std::vector<std::uint32_t>(n + messages));
  std::vector<operation<>> sends;
  std::vector<operation<received>> receives;
  for (std::size_t i = 0; i < messages; ++i) {
    out.push_back(values(n + i, static_cast<std::uint32_t>(i) + 1000 * static_cast<std::uint32_t>(world.rank())));
  }
  for (int round = 0; round < 3; ++round) {
    sends.clear();
    receives.clear();
    for (std::size_t i = 0; i < messages; ++i) sends.push_back(world.send(out[i], to{other}, tag{static_cast<int>(i)}));
    for (std::size_t k = 0; k < messages; ++k) {
      const std::size_t i = k * 73 % messages;
      receives.push_back(world.recv(in[i], from{other}, tag{static_cast<int>(i)}));
    }
    for (auto& r : receives) co_await r;
    for (auto& s : sends) co_await s;
    for (std::size_t i = 0; i < messages; ++i) {
      const auto expected = values(n + i, static_cast<std::uint32_t>(i) + 1000 * static_cast<std::uint32_t>(other));
      harness::expect(std::equal(expected.begin(), expected.end(), in[i].begin()), "one of many");
    }
  }
  co_return 0;
}

struct progress {
  std::atomic<int> sent{0};      // messages that the sender has begun, and left alone
  std::atomic<int> received{0};  // that the receiver has
};

/// The sender begins, looks after it for some turns, and then waits for something else than the world: the receiver must
/// come to an end without it.
task<int> sender_elsewhere(world_type world, const faults::shared<progress>& how_far) {
  constexpr std::size_t n = 6000001;
  int message = 0;
  for (const int turns : {0, 1, 5, 40}) {
    ++message;
    const auto which = static_cast<std::uint32_t>(message);
    if (world.rank() == 0) {
      const auto out = values(n, which);
      auto sending = world.send(out, to{1});
      for (int i = 0; i < turns; ++i) (void)world.poll();
      how_far->sent = message;
      while (how_far->received < message) ::sched_yield();
      co_await sending;
    } else {
      std::vector<std::uint32_t> in(n);
      // In half of the cases the receive is there first.
      if (message % 2 == 0) {
        while (how_far->sent < message) ::sched_yield();
      }
      co_await world.recv(in, from{0});
      harness::expect(in == values(n, which), "what a busy sender had");
      how_far->received = message;
    }
  }
  co_return 0;
}

/// The sender is stopped in the middle, and goes on when the receiver has everything.
task<int> sender_stopped(world_type world) {
  constexpr std::size_t n = 6000001;
  if (world.rank() == 0) {
    const auto out = values(n, 3);
    auto sending = world.send(out, to{1});
    for (int i = 0; i < 3; ++i) (void)world.poll();
    ::raise(SIGSTOP);
    co_await sending;
  } else {
    std::vector<std::uint32_t> in(n);
    co_await world.recv(in, from{0});
    harness::expect(in == values(n, 3), "what a stopped sender had");
    std::printf("received\n");
    std::fflush(stdout);
  }
  co_await world.barrier();
  co_return 0;
}

/// One end drops its operation after some turns, and its buffer with it: both get an error, and nothing else happens. Where
/// it was over by then, nothing happens at all.
task<int> dropped(world_type world, int who, int turns) {
  constexpr std::size_t n = 6000001;
  {
    auto data = values(n, 5);
    std::optional<operation<>> sending;
    std::optional<operation<received>> receiving;
    if (world.rank() == 0) {
      sending.emplace(world.send(data, to{1}));
    } else {
      receiving.emplace(world.recv(data, from{0}));
    }
    if (world.rank() == who) {
      for (int i = 0; i < turns; ++i) (void)world.poll();
      sending.reset();
      receiving.reset();
      // The buffer is its owner's again: nobody else writes to it.
      const auto own = values(n, 8);
      data = own;
      for (int i = 0; i < 100; ++i) ::sched_yield();
      harness::expect(data == own, "nothing is written to a buffer whose receive was dropped");
    } else {
      // What was complete on one end may have been dropped on the other only after that.
      try {
        if (sending) co_await *sending;
        if (receiving) co_await *receiving;
      } catch (const error& e) {
        harness::expect(e.condition() == errc::aborted, e.what());
      }
    }
  }
  try {
    co_await world.barrier();
  } catch (const error& e) {
    harness::expect(e.condition() == errc::aborted, e.what());
  }
  co_return 0;
}

/// The sender drops what its receiver has asked for and not seen yet, and its memory is used for something else, or is no more.
/// More of them than cursors: the last is asked for.
task<int> given_up(world_type world, std::size_t messages, bool unmaps,
                   const faults::shared<std::atomic<int>>& how_far) {
  constexpr std::size_t n = 50000;
  const auto before = values(n, 1);
  std::vector<std::uint32_t> in(n);
  world_type copy = co_await world.duplicate();
  for (int again = 0; again < 2; ++again) {
    if (world.rank() == 0) {
      co_await copy.send(before, to{1});
    } else {
      co_await copy.recv(in, from{0});
    }
  }
  const tag last{static_cast<int>(messages)};
  if (world.rank() == 0) {
    const std::size_t bytes = messages * n * sizeof(std::uint32_t);
    void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    harness::expect(pages != MAP_FAILED, "memory");
    const std::span<std::uint32_t> out(static_cast<std::uint32_t*>(pages), messages * n);
    std::fill(out.begin(), out.end(), 1U);
    while (*how_far < 1) ::sched_yield();
    {
      std::vector<operation<>> sends;
      for (std::size_t i = 0; i < messages; ++i) {
        sends.push_back(copy.send(out.subspan(i * n, n), to{1}, tag{static_cast<int>(i) + 1}));
      }
    }
    if (unmaps) {
      ::munmap(pages, bytes);
    } else {
      std::fill(out.begin(), out.end(), 77U);
    }
    *how_far = 2;
  } else {
    auto receiving = copy.recv(in, from{0}, last);
    *how_far = 1;
    while (*how_far < 2) ::sched_yield();
    bool failed = false;
    try {
      co_await receiving;
    } catch (const error& e) {
      failed = true;
      harness::expect(e.condition() == errc::aborted, e.what());
    }
    harness::expect(failed, "no message that its sender had given up");
  }
  // The two go on elsewhere, with long messages too.
  if (world.rank() == 0) {
    co_await world.send(before, to{1});
  } else {
    co_await world.recv(in, from{0});
    harness::expect(in == before, "the next message, whole");
  }
  co_await world.barrier();
  co_return 0;
}

/// A child is forked while a message comes, and lets go of everything: it goes on in the parent.
task<int> forked_meanwhile(world_type world, const faults::shared<std::atomic<int>>& how_far) {
  struct leave_child {};
  constexpr std::size_t n = 6000001;
  const auto sent = values(n, 4);
  std::vector<std::uint32_t> in(n);
  try {
    if (world.rank() == 0) {
      auto sending = world.send(sent, to{1}, timeout{std::chrono::seconds{10}});
      while (*how_far < 1) (void)world.poll();
      while (*how_far < 2) ::sched_yield();
      co_await sending;
    } else {
      auto receiving = world.recv(in, from{0}, timeout{std::chrono::seconds{10}});
      while (in.front() == 0) (void)world.poll();  // it has begun
      *how_far = 1;
      const pid_t child = ::fork();
      if (child == 0) throw leave_child{};
      int status = 0;
      ::waitpid(child, &status, 0);
      *how_far = 2;
      co_await receiving;
      harness::expect(in == sent, "all of the message");
    }
  } catch (const leave_child&) {
    std::_Exit(0);
  }
  co_await world.barrier();
  co_return 0;
}

/// A receive is dropped in the middle of its message, and its communicator with it: what was on its way goes nowhere, and
/// the other communicators of the two ranks go on.
task<int> dropped_with_its_communicator(world_type world) {
  constexpr std::size_t n = 100003;
  for (int turns = 0; turns < 40; ++turns) {
    std::optional<world_type> copy(co_await world.duplicate());
    const auto sent = values(n, static_cast<std::uint32_t>(turns));
    if (world.rank() == 0) {
      try {
        co_await copy->send(sent, to{1});
      } catch (const error& e) {
        harness::expect(e.condition() == errc::aborted, e.what());
      }
    } else {
      auto in = values(n, 99);
      // Now and then the message has been offered before it is asked for, and is looked at only when all this is gone.
      if (turns % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds{2});
      std::optional<operation<received>> receiving(copy->recv(in, from{0}));
      for (int i = 0; i < turns; ++i) (void)world.poll();
      receiving.reset();
    }
    copy.reset();
    if (world.rank() == 0) {
      co_await world.send(sent, to{1});
    } else {
      std::vector<std::uint32_t> in(n);
      co_await world.recv(in, from{0});
      harness::expect(in == sent, "the next message, whole");
    }
  }
  co_await world.barrier();
  co_return 0;
}

/// On an io_context nobody looks at memory between two handlers: all room for the next part is told by a letter.
boost::asio::awaitable<int> on_handlers_alone(world_type world) {
  constexpr std::size_t n = 3000001;
  const int other = 1 - world.rank();
  for (std::uint32_t turn = 0; turn < 6; ++turn) {
    const auto out = values(n + turn, 2 * turn + static_cast<std::uint32_t>(world.rank()));
    std::vector<std::uint32_t> in(n + turn);
    co_await world.exchange(out, to{other}, in, from{other}, tag{3});
    harness::expect(in == values(n + turn, 2 * turn + static_cast<std::uint32_t>(other)), "both ways, by handlers");
  }
  co_return 0;
}

int on_io_context(bool may_read) {
  if (!may_read && !harness::forbid_reading_of_others()) return 2;
  boost::asio::io_context io;
  auto code = boost::asio::co_spawn(io, on_handlers_alone(connect<cpu>(io)), boost::asio::use_future);
  io.run();
  return code.get();
}

}  // namespace

TEST_CASE("long messages: every length, there and back and both ways") {
  for (const char* const way : ways) on_two(way, all_lengths);
}

TEST_CASE("long messages: the same where ranks share cores") {
  on_ranks(6, [](world_type world) -> task<int> {
    auto pair = co_await world.split(color{world.rank() / 2});
    auto all = all_lengths(std::move(pair));
    const int code = co_await all;
    co_return code;
  });
}

TEST_CASE("long messages: more of them than cursors, in another order") {
  for (const char* const way : ways) on_two(way, many_at_once);
}

TEST_CASE("long messages: a sender that does something else is not waited for") {
  const faults::shared<progress> how_far;
  on_two("0", [&how_far](world_type world) { return sender_elsewhere(std::move(world), how_far); });
  const faults::shared<progress> how_far_alone;
  on_two("both", [&how_far_alone](world_type world) { return sender_elsewhere(std::move(world), how_far_alone); });
}

TEST_CASE("long messages: where one may read the other's memory, and the other not write to it") {
  for (const int who : {0, 1}) {
    for (const char* const way : {"both", "auto"}) {
      on_two(way, [who](world_type world) -> task<int> {
        if (world.rank() == who) harness::expect(harness::forbid_writing_to_others(), "a filter of system calls");
        co_return co_await all_lengths(std::move(world));
      });
    }
  }
}

TEST_CASE("long messages: a sender that is stopped is not waited for") {
  harness::rank_options options;
  options.signals = {{1, "received", 0, SIGCONT}};
  for (const char* const way : {"0", "both"}) {
    options.environment = {{"COHORT_PEER_TIMEOUT", "60"}, {"COHORT_SINGLE_COPY", way}};
    on_ranks(2, sender_stopped, options);
  }
}

TEST_CASE("long messages: either end drops its operation in the middle") {
  for (const int who : {0, 1}) {
    for (const int turns : {1, 10, 100}) {
      CAPTURE(who);
      CAPTURE(turns);
      for (const char* const way : {"0", "1", "both"}) {
        on_two(way, [who, turns](world_type world) { return dropped(std::move(world), who, turns); });
      }
    }
  }
}

TEST_CASE("long messages: what its sender gives up is not read, whatever is in its place by then") {
  for (const bool unmaps : {false, true}) {
    for (const char* const way : {"0", "1", "both"}) {
      CAPTURE(unmaps);
      const faults::shared<std::atomic<int>> how_far;
      on_two(way, [&](world_type world) { return given_up(std::move(world), 1, unmaps, how_far); });
    }
    const faults::shared<std::atomic<int>> how_far;
    on_two("1", [&](world_type world) { return given_up(std::move(world), 70, unmaps, how_far); });
  }
}

TEST_CASE("long messages: a child that is forked meanwhile ends nothing") {
  for (const char* const way : {"0", "both"}) {
    const faults::shared<std::atomic<int>> how_far;
    on_two(way, [&how_far](world_type world) { return forked_meanwhile(std::move(world), how_far); });
  }
}

TEST_CASE("long messages: a receive is dropped in the middle, and its communicator goes") {
  for (const char* const way : ways) on_two(way, dropped_with_its_communicator);
}

TEST_CASE("long messages: on io_contexts, where their memory may be read and where not") {
  for (const bool may_read : {true, false}) {
    CAPTURE(may_read);
    for (const auto& r : harness::run_ranks(2, [may_read](int) { return on_io_context(may_read); })) {
      INFO(harness::describe(r));
      CHECK(r.ok());
    }
  }
}
