// SPDX-License-Identifier: BSL-1.0
// Messages of some KiB over sockets that take only part of them at a time, as full ones do: they are read to their place while
// they arrive, whichever they are, and what comes behind them too. And long ones, that nobody has asked for yet or that are combined
// while they arrive.
#include "../support/all_end_well.hpp"
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace {

std::uint32_t state = 1;
std::uint32_t next_number() {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}
std::atomic<bool> takes_parts{false};  // of what is sent from now on; the liveness thread sends as well
int parts_taken = 0;

}  // namespace

// What the library calls, in place of the C library's: the kernel does it, of the first bytes.
extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  msghdr m = *message;
  std::array<iovec, 64> parts{};
  std::size_t left = 0;
  for (std::size_t i = 0; i < m.msg_iovlen; ++i) left += m.msg_iov[i].iov_len;
  if (takes_parts && left > 4096 && m.msg_iovlen <= parts.size() && next_number() % 4 != 0) {
    left = 1 + next_number() % left;
    std::size_t count = 0;
    for (; left > 0; ++count) {
      parts[count] = m.msg_iov[count];
      parts[count].iov_len = std::min(parts[count].iov_len, left);
      left -= parts[count].iov_len;
    }
    m.msg_iov = parts.data();
    m.msg_iovlen = count;
    ++parts_taken;
  }
  return ::syscall(SYS_sendmsg, fd, &m, flags);
}

namespace {

using namespace cohort;

using words = std::vector<std::uint32_t>;

/// Element i of what a rank gives in a round.
std::uint32_t number(int from, int round, std::size_t i) {
  return static_cast<std::uint32_t>(from) * 7919u + static_cast<std::uint32_t>(round) * 104729u +
         static_cast<std::uint32_t>(i);
}
[[gnu::noinline]] void fill(words& w, int from, int round, std::size_t count) {
  w.resize(count);
  for (std::size_t i = 0; i < count; ++i) w[i] = number(from, round, i);
}
/// Whether elements `at` and behind are `count` of those, from the `first` on.
[[gnu::noinline]] bool are(const words& w, std::size_t at, std::size_t count, int from, int round,
                           std::size_t first = 0) {
  if (w.size() < at + count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    if (w[at + i] != number(from, round, first + i)) return false;
  }
  return true;
}

/// Between 2 and 72 KiB, the same on both ranks.
std::size_t words_of(int round) { return 512 + static_cast<std::size_t>(round) * 613 % 18000; }

/// Whether it has been as this program means it: a test of sends in parts that has sent none is none.
int parts_were_taken() { return parts_taken > 0 ? 0 : 9; }

/// What a round of questions and answers has beside these.
enum class beside { nothing, shorter_than_room, same_tag_behind, other_in_front };

beside in_round(int k) {
  if (k < 100) return beside::nothing;  // so that they are expected at once
  constexpr std::array all{beside::nothing, beside::shorter_than_room, beside::same_tag_behind,
                           beside::nothing, beside::other_in_front,    beside::nothing};
  return all[static_cast<std::size_t>(k) % all.size()];
}

task<int> ask(communicator<cpu>& world, int k, words& mine, words& theirs) {
  const int me = world.rank();
  const int other = 1 - me;
  const std::size_t n = words_of(k);
  const beside what = in_round(k);
  fill(mine, me, k, n);
  co_await world.send(mine, to{other}, tag{k % 3});
  // Of a longer buffer only what the message has is written to.
  const std::size_t more = what == beside::shorter_than_room ? 3000 : 0;
  fill(theirs, me, -k, n + more);
  if (more > 0) std::this_thread::sleep_for(std::chrono::microseconds{300});  // by then there is another one behind it
  const received got = co_await world.recv(theirs, from{other}, tag{k % 3});
  if (got.count != n || !are(theirs, 0, n, other, k)) co_return 1;
  if (!are(theirs, n, more, me, -k, n)) co_return 4;
  if (what == beside::nothing) co_return 0;
  co_await world.recv(theirs, from{other}, tag{what == beside::same_tag_behind ? k % 3 : 5});
  co_return are(theirs, 0, n, other, -k) ? 0 : 2;
}

task<int> answer(communicator<cpu>& world, int k, words& mine, words& theirs) {
  const int me = world.rank();
  const int other = 1 - me;
  const std::size_t n = words_of(k);
  const beside what = in_round(k);
  theirs.resize(n);
  co_await world.recv(theirs, from{other}, tag{k % 3});
  if (!are(theirs, 0, n, other, k)) co_return 3;
  fill(mine, me, k, n);
  fill(theirs, me, -k, n);
  if (what == beside::other_in_front) {
    operation<> first = world.send(theirs, to{other}, tag{5});
    co_await world.send(mine, to{other}, tag{k % 3});
    co_await first;
    co_return 0;
  }
  co_await world.send(mine, to{other}, tag{k % 3});
  if (what == beside::shorter_than_room) co_await world.send(theirs, to{other}, tag{5});
  if (what == beside::same_tag_behind) co_await world.send(theirs, to{other}, tag{k % 3});
  co_return 0;
}

task<int> answers(communicator<cpu> world) {
  words mine;
  words theirs;
  for (int k = 0; k < 1500; ++k) {
    takes_parts = k % 3 != 0;
    task<int> round = world.rank() == k % 2 ? ask(world, k, mine, theirs) : answer(world, k, mine, theirs);
    if (const int wrong = co_await std::move(round); wrong != 0) co_return wrong;
  }
  co_return parts_were_taken();
}

task<bool> gathers(communicator<cpu>& world, int k, const words& mine, words& all, std::size_t n) {
  all.assign(2 * n, 0);
  co_await world.all_gather(mine, all);
  if (!are(all, 0, n, 0, k) || !are(all, n, n, 1, k)) co_return false;
  all.assign(2 * n, 0);
  co_await world.gather(mine, all, root{k % 2});
  co_return world.rank() != k % 2 || (are(all, 0, n, 0, k) && are(all, n, n, 1, k));
}

task<bool> parts_with(communicator<cpu>& world, int k, words& given, words& all, std::size_t n) {
  const int me = world.rank();
  fill(given, me, k, 2 * n);
  all.assign(2 * n, 0);
  co_await world.all_to_all(given, all);
  const std::size_t own = static_cast<std::size_t>(me) * n;
  if (!are(all, 0, n, 0, k, own) || !are(all, n, n, 1, k, own)) co_return false;
  all.assign(n, 0);
  co_await world.scatter(given, all, root{k % 2});
  if (!are(all, 0, n, k % 2, k, own)) co_return false;
  co_await world.broadcast(given, root{k % 2});
  co_return are(given, 0, 2 * n, k % 2, k);
}

/// Collectives that are one message of each of two ranks, or of one of them.
task<int> blocks(communicator<cpu> world) {
  const int me = world.rank();
  words mine;
  words all;
  for (int k = 0; k < 400; ++k) {
    takes_parts = k % 3 != 0;
    const std::size_t n = words_of(k);
    fill(mine, me, k, n);
    const bool gathered = co_await gathers(world, k, mine, all, n);
    if (!gathered) co_return 1;
    if (k % 25 == 7 && me == k / 25 % 2) std::this_thread::sleep_for(std::chrono::microseconds{300});
    const bool parted = co_await parts_with(world, k, mine, all, n);
    if (!parted) co_return 2;
  }
  co_return parts_were_taken();
}

/// Nobody asks for the long one until the short one behind it has come.
task<bool> around(communicator<cpu>& world, int k, std::size_t n, words& mine, words& long_one) {
  const int me = world.rank();
  const int next = (me + 1) % world.size();
  const int before = (me + world.size() - 1) % world.size();
  fill(mine, me, k, n);
  long_one.assign(n, 0);
  const int sent_word = k;
  int word = -1;
  operation<> sent = world.send(mine, to{next}, tag{1});
  operation<> sent_too = world.send(std::span(&sent_word, 1), to{next}, tag{2});
  co_await world.recv(std::span(&word, 1), from{before}, tag{2});
  co_await world.recv(long_one, from{before}, tag{1});
  co_await sent;
  co_await sent_too;
  co_return are(long_one, 0, n, before, k) && word == k;
}

/// Blocks that come while their receiver still waits for something short, of ranks that share cores or do not.
task<int> unasked(communicator<cpu> world) {
  const int me = world.rank();
  const int ranks = world.size();
  words given;
  words got;
  for (int k = 0; k < 24; ++k) {
    takes_parts = k % 2 != 0;
    const std::size_t n = (std::size_t{8} << 10) << k % 6;  // 32 KiB to 1 MiB
    fill(given, me, k, n * static_cast<std::size_t>(ranks));
    got.assign(given.size(), 0);
    co_await world.barrier();
    if (k % 3 == 0 && me == k % ranks) std::this_thread::sleep_for(std::chrono::milliseconds{2});
    co_await world.all_to_all(given, got);
    for (int r = 0; r < ranks; ++r) {
      if (!are(got, static_cast<std::size_t>(r) * n, n, r, k, static_cast<std::size_t>(me) * n)) co_return 1;
    }
    const bool came = co_await around(world, k, n, given, got);
    if (!came) co_return 2;
  }
  co_return parts_were_taken();
}

/// Three words, which no chunk of a power of two is a multiple of.
struct triple {
  std::uint32_t x, y, z;
  friend bool operator==(const triple&, const triple&) = default;
};
struct add_triples {
  static constexpr bool commutative = true;
  triple operator()(const triple& a, const triple& b) const { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
};
triple triple_of(int from, int round, std::size_t i) {
  return {number(from, round, i), number(from, round, 3 * i), ~number(from, round, i)};
}
bool are_sums(const std::vector<triple>& w, std::size_t count, int round, std::size_t first = 0) {
  for (std::size_t i = 0; i < count; ++i) {
    if (w[i] != add_triples{}(triple_of(0, round, first + i), triple_of(1, round, first + i))) return false;
  }
  return true;
}

/// What is longer than a quarter of a MiB is combined while it arrives: in several places in turn where both ranks send, in one where
/// one of them does.
task<int> combined(communicator<cpu> world) {
  const int me = world.rank();
  std::vector<triple> given;
  std::vector<triple> got;
  for (int k = 0; k < 90; ++k) {
    takes_parts = k % 3 != 0;
    const std::size_t n = 22000 + static_cast<std::size_t>(k) * 7919 % 66000;  // 258 KiB to 1 MiB
    const std::size_t half = n / 2;
    given.resize(2 * half);
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = triple_of(me, k, i);
    got.assign(given.size(), {});
    if (k % 10 == 7 && me == k / 10 % 2) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    co_await world.all_reduce(given, got, add_triples{});
    if (!are_sums(got, got.size(), k)) co_return 1;
    got.assign(half, {});
    co_await world.reduce_scatter(given, got, add_triples{});
    if (!are_sums(got, half, k, static_cast<std::size_t>(me) * half)) co_return 2;
    got.assign(given.size(), {});
    co_await world.reduce(given, got, add_triples{}, root{k % 2});
    if (me == k % 2 && !are_sums(got, got.size(), k)) co_return 3;
    co_await world.all_reduce(given, add_triples{});
    if (!are_sums(given, given.size(), k)) co_return 4;
  }
  co_return parts_were_taken();
}

void over_sockets(int ranks, task<int> (*rank_main)(communicator<cpu>)) {
  harness::rank_options options;
  options.environment = {{"COHORT_SHM", "0"}};
  options.deadline = std::chrono::seconds{60};
  harness::expect_all_end_well(ranks, rank_main, options);
}

}  // namespace

TEST_CASE("partial sends: questions and answers of some KiB") { over_sockets(2, answers); }

TEST_CASE("partial sends: collectives of two ranks") { over_sockets(2, blocks); }

TEST_CASE("partial sends: long blocks that nobody has asked for yet") {
  for (const int ranks : {2, 4, 6}) over_sockets(ranks, unasked);
}

TEST_CASE("partial sends: long vectors that are combined while they arrive") { over_sockets(2, combined); }
