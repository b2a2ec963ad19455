// SPDX-License-Identifier: BSL-1.0
// Which sockets a rank asks while it waits: those of the ranks that something is awaited from, again and again, and the
// others now and then, as each of them costs a call of the kernel's.
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

namespace {
std::array<std::size_t, 256> asked{};  // of each descriptor, how often there was nothing in it
}

// What the library calls, in place of the C library's: the kernel is asked all the same.
extern "C" ssize_t recv(int fd, void* into, std::size_t bytes, int flags) {
  const long got = ::syscall(SYS_recvfrom, fd, into, bytes, flags, nullptr, nullptr);
  if (got < 0 && fd >= 0 && static_cast<std::size_t>(fd) < asked.size()) ++asked[static_cast<std::size_t>(fd)];
  return got;
}

namespace {

using namespace cohort;

constexpr int ranks = 4;
constexpr int messages = 200;
constexpr std::size_t elements = 20000;  // more than is looked for before anything waits

/// How often each socket was asked in vain meanwhile, the one asked most in front.
std::vector<std::size_t> counts() {
  std::vector<std::size_t> all(asked.begin(), asked.end());
  std::sort(all.begin(), all.end(), std::greater<>{});
  all.resize(ranks - 1);
  std::printf("asked %zu, %zu and %zu times\n", all[0], all[1], all[2]);
  return all;
}

/// What is sent next finds its receiver waiting: how that one waits is what is counted.
void send_late() { std::this_thread::sleep_for(std::chrono::microseconds{100}); }

/// Whether rank 0 has asked often enough for its counts to say something. Where other programs use the cores too, a message has often
/// come before it is looked for: then more of them are sent, until the ranks' deadline.
task<bool> enough(communicator<cpu>& world) {
  std::uint8_t said = *std::max_element(asked.begin(), asked.end()) > messages ? 1 : 0;
  co_await world.broadcast(std::span(&said, 1), root{0});
  co_return said != 0;
}

/// Afterwards there is a connection between every two, and nothing has been counted.
task<> connect_all(communicator<cpu>& world) {
  const std::uint32_t word = 1;
  std::uint32_t theirs = 0;
  for (int k = 1; k < ranks; ++k) {
    co_await world.exchange(std::span(&word, 1), to{(world.rank() + k) % ranks}, std::span(&theirs, 1),
                            from{(world.rank() + ranks - k) % ranks});
  }
  asked = {};
}

/// Rank 0 waits for each message of rank 1, which sends it late, where the others are silent.
task<int> waits_for_one(communicator<cpu> world) {
  std::vector<std::uint32_t> data(elements);
  co_await connect_all(world);
  for (bool done = false; !done;) {
    for (int i = 0; i < messages; ++i) {
      if (world.rank() == 1) {
        send_late();
        data.back() = static_cast<std::uint32_t>(i);
        co_await world.send(data, to{0});
      } else if (world.rank() == 0) {
        co_await world.recv(data, from{1});
        if (data.back() != static_cast<std::uint32_t>(i)) co_return 2;
      }
    }
    done = co_await enough(world);
  }
  int wrong = 0;
  if (world.rank() == 0) {
    const std::vector<std::size_t> most = counts();
    wrong = most[0] > messages && most[0] > 8 * most[1] ? 0 : 1;
  }
  co_await world.barrier();
  co_return wrong;
}

/// Any of the others may be the next, and is noticed as soon.
task<int> waits_for_any(communicator<cpu> world) {
  std::vector<std::uint32_t> data(elements);
  co_await connect_all(world);
  std::array<int, ranks> from_each{};
  int rounds = 0;
  for (bool done = false; !done; ++rounds) {
    if (world.rank() == 0) {
      for (int i = 0; i < messages * (ranks - 1); ++i) {
        const received r = co_await world.recv(data, from_any);
        ++from_each[static_cast<std::size_t>(r.source)];
      }
    } else {
      for (int i = 0; i < messages; ++i) {
        send_late();
        co_await world.send(data, to{0});
      }
    }
    done = co_await enough(world);
  }
  int wrong = 0;
  if (world.rank() == 0) {
    const std::vector<std::size_t> most = counts();
    const bool evenly = most[0] > messages && most[0] < 3 * most[2];
    const bool all =
        std::all_of(from_each.begin() + 1, from_each.end(), [rounds](int n) { return n == rounds * messages; });
    wrong = evenly && all ? 0 : 1;
  }
  co_await world.barrier();
  co_return wrong;
}

void over_sockets(task<int> (*rank_main)(communicator<cpu>)) {
  harness::rank_options options;
  options.environment = {{"COHORT_SHM", "0"}};
  const auto results = harness::run_ranks(
      ranks, [rank_main](int) { return run(rank_main); }, options);
  for (const auto& result : results) {
    INFO(harness::describe(result));
    CHECK(result.ok());
    if (!result.out.empty()) MESSAGE(result.out);
  }
}

TEST_CASE("a rank that waits for another one asks its socket, and the rest only now and then") {
  over_sockets(&waits_for_one);
}

TEST_CASE("a rank that waits for whoever comes first asks all sockets alike") { over_sockets(&waits_for_any); }

}  // namespace
