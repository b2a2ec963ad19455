// SPDX-License-Identifier: BSL-1.0
// Short messages that follow each other closely leave together over a socket, wait there no longer than their receiver
// has something else to do, and not at all once their sender waits itself.
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace {

/// What ranks tell each other besides their messages: memory that all of them see.
struct signs {
  std::atomic<int> bursts{0};  // that rank 0 has sent
  std::atomic<bool> sent_all{false};
  std::atomic<bool> read_all{false};
  std::atomic<bool> may_not_wait{false};  // what rank 0 sends, any more
};
signs* shared = nullptr;

int last_used = -1;    // of the sockets that something was sent through
int may_wait = 0;      // how often a socket was told that what is short may wait
int acknowledged = 0;  // how often this end told the other at once that it had read

}  // namespace

// What the library calls, in place of the C library's: the kernel does all of it.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t bytes) noexcept {
  if (level == IPPROTO_TCP && bytes == sizeof(int)) {
    int number = 0;
    std::memcpy(&number, value, sizeof number);
    if (name == TCP_QUICKACK) ++acknowledged;
    if (name == TCP_NODELAY && number == 0) ++may_wait;
    if (name == TCP_NODELAY && number == 1 && may_wait > 0) shared->may_not_wait = true;
  }
  return static_cast<int>(::syscall(SYS_setsockopt, fd, level, name, value, bytes));
}
extern "C" ssize_t send(int fd, const void* from, std::size_t bytes, int flags) {
  last_used = fd;
  return ::syscall(SYS_sendto, fd, from, bytes, flags, nullptr, 0);
}

namespace {

using namespace cohort;

constexpr std::uint64_t messages = 200;
constexpr auto long_enough = std::chrono::seconds{20};

/// How much of what was sent through it a socket still has at this end.
int unsent(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQNSD, &bytes) == 0 ? bytes : -1;
}

/// Looks again and again, and does nothing else.
template <class Condition>
bool comes_true(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + long_enough;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

task<> connect(communicator<cpu>& world) {
  const std::uint64_t word = 1;
  std::uint64_t theirs = 0;
  co_await world.exchange(std::span(&word, 1), to{1 - world.rank()}, std::span(&theirs, 1), from{1 - world.rank()});
}

/// Sends bursts until the socket keeps the end of one back: this thread may lose its processor in the midst of it. False: it
/// never does.
task<bool> send_bursts(communicator<cpu>& world) {
  constexpr int most = 50;
  for (int burst = 1; burst <= most; ++burst) {
    for (std::uint64_t i = 0; i < messages; ++i) co_await world.send(std::span(&i, 1), to{1});
    shared->bursts = burst;
    // What is not sent yet, as the kernel has other work, leaves meanwhile; what is kept back does not.
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
    const int kept = unsent(last_used);
    std::printf("burst %d: %d bytes kept back\n", burst, kept);
    if (kept > 0) co_return true;
  }
  co_return false;
}

/// How many of them are not what was sent.
task<int> receive_bursts(communicator<cpu>& world) {
  int wrong = 0;
  for (int burst = 0; burst < shared->bursts; ++burst) {
    for (std::uint64_t i = 0; i < messages; ++i) {
      std::uint64_t word = 0;
      co_await world.recv(std::span(&word, 1), from{0});
      if (word != i) ++wrong;
    }
  }
  co_return wrong;
}

/// Rank 0 sends, and then has other things to do; rank 1 has at first.
task<int> sender_goes_away(communicator<cpu> world) {
  co_await connect(world);
  int result = 0;
  if (world.rank() == 0) {
    if (!co_await send_bursts(world)) result = 2;
    const int socket = last_used;
    shared->sent_all = true;
    if (!comes_true([socket] { return unsent(socket) == 0; })) result = 3;
    // Rank 1 may read everything at once, after a while: then only what ends it says whether to acknowledge that.
    if (!comes_true([] { return shared->read_all.load(); })) result = 4;
  } else {
    if (!comes_true([] { return shared->sent_all.load(); })) result = 5;
    if (co_await receive_bursts(world) > 0) result = 6;
    shared->read_all = true;
    std::printf("acknowledged at once %d times\n", acknowledged);
    if (acknowledged == 0) result = 7;
  }
  co_await world.barrier();
  co_return result;
}

/// Rank 0 sends, and waits for an answer; rank 1 reads nothing until that has let its messages leave.
task<int> sender_waits(communicator<cpu> world) {
  co_await connect(world);
  int result = 0;
  std::uint64_t answer = 0;
  if (world.rank() == 0) {
    if (!co_await send_bursts(world)) result = 2;
    shared->may_not_wait = false;
    shared->sent_all = true;
    co_await world.recv(std::span(&answer, 1), from{1});
    if (answer != messages) result = 3;
  } else {
    if (!comes_true([] { return shared->sent_all && shared->may_not_wait; })) result = 5;
    if (co_await receive_bursts(world) > 0) result = 6;
    answer = messages;
    co_await world.send(std::span(&answer, 1), to{0});
  }
  co_await world.barrier();
  co_return result;
}

/// Ranks that answer each other, or exchange something, send nothing that may wait.
task<int> ranks_answer(communicator<cpu> world) {
  co_await connect(world);
  std::uint64_t word = 0;
  for (int i = 0; i < 2000; ++i) {
    if (world.rank() == 0) {
      co_await world.send(std::span(&word, 1), to{1});
      co_await world.recv(std::span(&word, 1), from{1});
    } else {
      co_await world.recv(std::span(&word, 1), from{0});
      ++word;
      co_await world.send(std::span(&word, 1), to{0});
    }
  }
  for (int i = 0; i < 2000; ++i) co_await world.all_reduce(std::span(&word, 1), max{});
  std::printf("%d times\n", may_wait);
  co_return word == 2000 && may_wait == 0 ? 0 : 1;
}

/// Of what differs in length nothing overtakes anything or is lost, whatever may wait.
task<int> lengths_mix(communicator<cpu> world) {
  constexpr std::size_t longest = 5000;
  co_await connect(world);
  int wrong = 0;
  std::vector<std::uint64_t> data(longest);
  std::uint64_t seed = 1;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    const std::size_t elements = (seed >> 33) % 50 == 0 ? longest : (seed >> 40) % 300;
    const std::span<std::uint64_t> part(data.data(), elements);
    if (world.rank() == 0) {
      for (std::uint64_t& x : part) x = i;
      co_await world.send(part, to{1});
    } else {
      co_await world.recv(part, from{0});
      for (const std::uint64_t x : part) wrong += x == i ? 0 : 1;
    }
  }
  co_await world.barrier();
  if (world.rank() == 0 && may_wait == 0) wrong = 2;
  co_return wrong > 0 ? 1 : 0;
}

void over_sockets(task<int> (*rank_main)(communicator<cpu>)) {
  void* const memory = ::mmap(nullptr, sizeof(signs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  shared = new (memory) signs;
  harness::rank_options options;
  options.environment = {{"COHORT_SHM", "0"}};
  const auto results = harness::run_ranks(
      2, [rank_main](int) { return run(rank_main); }, options);
  for (const auto& result : results) {
    INFO(harness::describe(result));
    CHECK(result.ok());
    if (!result.out.empty()) MESSAGE(result.out);
  }
  ::munmap(memory, sizeof(signs));
}

TEST_CASE("a burst waits in its sender's socket for a receiver that reads nothing, and comes when that does") {
  over_sockets(&sender_goes_away);
}

TEST_CASE("a burst leaves when its sender waits, though its receiver reads nothing") { over_sockets(&sender_waits); }

TEST_CASE("messages that are answered, or exchanged, never wait") { over_sockets(&ranks_answer); }

TEST_CASE("long messages among short ones come in order and whole") { over_sockets(&lengths_mix); }

}  // namespace
