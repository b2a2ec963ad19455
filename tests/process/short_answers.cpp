// SPDX-License-Identifier: BSL-1.0
// Short messages that are taken where their receive is called, over sockets: whatever comes before or behind them, and
// whether they come at once or not.
#include "../support/all_end_well.hpp"
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

using namespace cohort;

namespace {

constexpr int rounds = 4000;

struct question {
  std::int32_t number;
  std::int32_t from;
};

/// What else the two do in a round, beside asking and answering.
enum class beside { nothing, another_tag, two_at_once, long_message, other_group, pause, longer_than_room, any_source };

beside in_round(int k) {
  if (k < rounds / 4) return beside::nothing;  // so that they are expected at once
  constexpr std::array all{beside::another_tag,      beside::two_at_once, beside::long_message, beside::nothing,
                           beside::other_group,      beside::pause,       beside::nothing,      beside::nothing,
                           beside::longer_than_room, beside::any_source,  beside::nothing};
  return all[static_cast<std::size_t>(k) % all.size()];
}

template <class T>
std::span<T> one(T& element) {
  return {&element, 1};
}

bool is(const question& q, int number, int from) { return q.number == number && q.from == from; }

/// Result: the first round that went wrong; -1: none
task<int> first_wrong(communicator<cpu>& world) {
  const int me = world.rank();
  const int other = 1 - me;
  communicator<cpu> apart = co_await world.duplicate();
  std::vector<std::int64_t> many(50000);
  std::array<question, 4> several{};
  for (int k = 0; k < rounds; ++k) {
    const beside what = in_round(k);
    question mine{k, me};
    question theirs{};
    if (me == k % 2) {
      co_await world.send(one(mine), to{other}, tag{k % 5});
      const received got = co_await world.recv(one(theirs), from{other}, tag{k % 5});
      if (!is(theirs, k, other) || got.count != 1 || got.tag != k % 5 || got.source != other) co_return k;
      if (what == beside::another_tag || what == beside::two_at_once) {
        co_await world.recv(one(theirs), from{other}, tag{what == beside::two_at_once ? k % 5 : 7});
        if (!is(theirs, -k, other)) co_return k;
      } else if (what == beside::long_message) {
        co_await world.recv(many, from{other}, tag{8});
        if (many.front() != k || many.back() != -k) co_return k;
      } else if (what == beside::other_group) {
        co_await apart.recv(one(theirs), from{other}, tag{k % 5});
        if (!is(theirs, -k, other)) co_return k;
      }
    } else {
      if (what == beside::any_source) {
        co_await world.recv(one(theirs), from_any, any_tag);
      } else if (what == beside::longer_than_room) {
        const received got = co_await world.recv(several, from{other}, tag{k % 5});
        theirs = several[0];
        if (got.count != 1) co_return k;
      } else {
        co_await world.recv(one(theirs), from{other}, tag{k % 5});
      }
      if (!is(theirs, k, other)) co_return k;
      if (what == beside::pause) std::this_thread::sleep_for(std::chrono::microseconds{100});
      question more{-k, me};
      // Before the answer what nobody waits for yet, behind it what is under the same tag.
      if (what == beside::another_tag) co_await world.send(one(more), to{other}, tag{7});
      if (what == beside::other_group) co_await apart.send(one(more), to{other}, tag{k % 5});
      if (what == beside::long_message) {
        many.front() = k;
        many.back() = -k;
        operation<> long_one = world.send(many, to{other}, tag{8});
        co_await world.send(one(mine), to{other}, tag{k % 5});
        co_await long_one;
      } else {
        co_await world.send(one(mine), to{other}, tag{k % 5});
      }
      if (what == beside::two_at_once) co_await world.send(one(more), to{other}, tag{k % 5});
    }
  }
  co_return -1;
}

task<int> none_goes_wrong(communicator<cpu> world) {
  const int wrong = co_await first_wrong(world);
  if (wrong >= 0) std::printf("rank %d: round %d\n", world.rank(), wrong);
  co_return wrong < 0 ? 0 : 1;
}

/// A message of another type is refused, whenever its receive is called.
task<int> mismatch_is_found(communicator<cpu> world) {
  const int me = world.rank();
  std::int64_t word = 0;
  for (int k = 0; k < 500; ++k) {
    if (me == 0) {
      co_await world.send(one(word), to{1});
      co_await world.recv(one(word), from{1});
    } else {
      co_await world.recv(one(word), from{0});
      co_await world.send(one(word), to{0});
    }
  }
  double other = 0;
  try {
    if (me == 0) {
      co_await world.send(one(word), to{1});
      co_await world.recv(one(word), from{1});
    } else {
      co_await world.recv(one(other), from{0});
    }
  } catch (const error& e) {
    co_return e.code() == errc::mismatch ? 0 : 2;
  }
  co_return 1;
}

/// Who has slept is told of what comes, however long it had asked its socket itself before, and for whom.
task<int> wakes_from_sleep(communicator<cpu> world) {
  const int me = world.rank();
  std::int64_t in = -1;
  // Nobody sleeps for more than a second without looking: so many such sleeps would be too many.
  for (std::int64_t k = 0; k < 100; ++k) {
    for (int i = 0; i < (k % 4) * 50; ++i) {
      // Answers that come at once, and a collective of all.
      if (me == 0) co_await world.send(one(k), to{1});
      if (me == 1) co_await world.recv(one(in), from{0});
      if (me == 1) co_await world.send(one(in), to{0});
      if (me == 0) co_await world.recv(one(in), from{1});
      if (me < 2 && in != k) co_return 1;
      if (i % 25 == 0) co_await world.barrier();
    }
    // Much longer than anybody yields. The others wait, each for somebody else: the first of them in the kernel.
    const int late = static_cast<int>(k) % world.size();
    if (me == late) std::this_thread::sleep_for(std::chrono::milliseconds{4});
    const std::int64_t total = co_await world.all_reduce(k, sum{});
    if (total != k * world.size()) co_return 2;
  }
  co_return 0;
}

void expect_all_end_well(task<int> (*rank_main)(communicator<cpu>), const harness::variables& environment,
                         int ranks = 2) {
  harness::rank_options options;
  options.environment = environment;
  options.deadline = std::chrono::seconds{60};
  harness::expect_all_end_well(ranks, rank_main, options);
}

}  // namespace

TEST_CASE("short answers: over sockets, over several of them, and in memory") {
  expect_all_end_well(none_goes_wrong, {{"COHORT_SHM", "0"}});
  expect_all_end_well(none_goes_wrong, {{"COHORT_SHM", "0"}, {"COHORT_TCP_STRIPES", "3"}});
  expect_all_end_well(none_goes_wrong, {});
}

TEST_CASE("short answers: one of another type is refused where others have come at once") {
  expect_all_end_well(mismatch_is_found, {{"COHORT_SHM", "0"}});
}

TEST_CASE("short answers: whoever sleeps between them is woken up, with few sockets and with many") {
  for (const int ranks : {2, 3, 7}) expect_all_end_well(wakes_from_sleep, {{"COHORT_SHM", "0"}}, ranks);
  expect_all_end_well(wakes_from_sleep, {{"COHORT_SHM", "0"}, {"COHORT_TCP_STRIPES", "3"}}, 3);
}
