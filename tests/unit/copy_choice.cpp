// SPDX-License-Identifier: BSL-1.0
// Which of three ways of copying is taken: the faster one, found by trying, and found again when that changes.
#include <cohort/transport/shm/copy_choice.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>

using cohort::transport::copy_choice;
using cohort::transport::copying;
using std::chrono::nanoseconds;

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

/// So many messages, of which `time(how)` gives the nanoseconds a byte. Result: how many went once only
template <class Time>
int single_copies(copy_choice& c, int messages, std::uint64_t bytes, Time time) {
  int single = 0;
  for (int i = 0; i < messages; ++i) {
    const copying how = c.next(bytes);
    single += how == copying::single_copy ? 1 : 0;
    c.took(how, bytes, nanoseconds(static_cast<std::int64_t>(time(how) * static_cast<double>(bytes))));
  }
  return single;
}

/// A pace for each way; that of both ends together is by far the slowest if none is given.
auto paces(double ring, double single, double both = 1) {
  return [=](copying how) { return how == copying::through_ring ? ring : how == copying::single_copy ? single : both; };
}

constexpr std::uint64_t short_message = mebibyte / 4;

/// Of n messages, at most so many try the slower ways, and at least so many one of them. More of the first.
int most_trials(int n, std::uint64_t bytes = mebibyte) {
  return static_cast<int>(copy_choice::trial(bytes)) * (n / static_cast<int>(copy_choice::look_again) + 8);
}
int least_trials(int n, std::uint64_t bytes = mebibyte) {
  return static_cast<int>(copy_choice::trial(bytes)) * (n / static_cast<int>(copy_choice::look_again) / 2);
}

}  // namespace

TEST_CASE("the faster way is found, and the slower tried now and then") {
  for (const std::uint64_t bytes : {std::uint64_t{65537}, mebibyte, mebibyte << 6, std::uint64_t{1} << 40}) {
    CAPTURE(bytes);
    copy_choice near;
    const int rarely = single_copies(near, 4000, bytes, paces(0.03, 0.09));
    CHECK(rarely >= least_trials(4000, bytes));
    CHECK(rarely <= most_trials(4000, bytes));
    copy_choice far;
    const int mostly = single_copies(far, 4000, bytes, paces(0.14, 0.1));
    CHECK(mostly >= 4000 - most_trials(4000, bytes));
    CHECK(mostly <= 4000 - least_trials(4000, bytes));
  }
}

TEST_CASE("each of three is found, and each of the others tried now and then") {
  for (const copying fastest : copy_choice::ways) {
    copy_choice c;
    std::array<int, 3> taken{};
    for (int i = 0; i < 4000; ++i) {
      const copying how = c.next(mebibyte);
      ++taken[static_cast<std::size_t>(how)];
      c.took(how, mebibyte, nanoseconds(how == fastest ? 50000 : 80000));
    }
    for (const copying how : copy_choice::ways) {
      const int times = taken[static_cast<std::size_t>(how)];
      if (how == fastest) {
        CHECK(times >= 4000 - most_trials(4000));
      } else {
        CHECK(times >= least_trials(4000));
      }
    }
  }
}

TEST_CASE("another pace is noticed, in either direction") {
  copy_choice c;
  (void)single_copies(c, 1000, mebibyte, paces(0.03, 0.09));
  // Every other trial is of the way that is faster now, and two of those are enough.
  CHECK(single_copies(c, 8000, mebibyte, paces(0.14, 0.09)) > 8000 - 5 * static_cast<int>(copy_choice::look_again));
  CHECK(single_copies(c, 8000, mebibyte, paces(0.03, 0.09)) < 5 * static_cast<int>(copy_choice::look_again));
}

TEST_CASE("ways that differ by less than it is worth do not take turns") {
  static_assert(copy_choice::ways[0] == copying::single_copy);
  copy_choice c;
  CHECK(single_copies(c, 10000, mebibyte, paces(0.098, 0.1)) >= 10000 - most_trials(10000));
}

TEST_CASE("the first messages after one of another kind are not counted") {
  copy_choice c;
  copying before = copying::single_copy;
  unsigned in_a_row = 0;
  // A ring that nobody has used for a while is slow, until both ends have found back to it.
  const auto time = [&](copying how) {
    in_a_row = std::exchange(before, how) != how ? 0 : in_a_row + 1;
    return how == copying::through_ring ? (in_a_row < copy_choice::unsettled(short_message) ? 1.0 : 0.05) : 0.09;
  };
  CHECK(single_copies(c, 5000, short_message, time) <= most_trials(5000, short_message));
}

TEST_CASE("a way that is faster once both ends have settled is found from the other one") {
  copy_choice c;
  // Until then the sender is asleep, as it has had nothing to do.
  (void)single_copies(c, 2000, short_message, paces(0.2, 0.07, 0.3));
  copying before = copying::single_copy;
  unsigned in_a_row = 0;
  const auto time = [&](copying how) {
    in_a_row = std::exchange(before, how) != how ? 0 : in_a_row + 1;
    return how == copying::by_both ? (in_a_row < copy_choice::unsettled(short_message) ? 0.1 : 0.05) : 0.07;
  };
  CHECK(single_copies(c, 60000, short_message, time) < 4 * static_cast<int>(copy_choice::look_rarely));
}

TEST_CASE("a first trial that misleads is soon made good") {
  for (const std::uint64_t bytes : {short_message, mebibyte}) {
    CAPTURE(bytes);
    copy_choice c;
    // The sender is still busy with what it posts when both ends are tried first.
    const int first = static_cast<int>(copy_choice::ways.size() * copy_choice::trial(bytes));
    (void)single_copies(c, first, bytes, paces(0.2, 0.1, 0.15));
    (void)single_copies(c, 200 - first, bytes, paces(0.2, 0.1, 0.05));
    CHECK(c.next(bytes) == copying::by_both);
  }
}

TEST_CASE("of many short messages fewer try the slower ways") {
  constexpr int each = static_cast<int>(copy_choice::trial(short_message));
  constexpr int rarely = static_cast<int>(copy_choice::look_rarely);
  copy_choice c;
  (void)single_copies(c, rarely, short_message, paces(0.03, 0.09));
  const int trials = single_copies(c, 20 * rarely, short_message, paces(0.03, 0.09));
  CHECK(trials >= 9 * each);
  CHECK(trials <= 11 * each);
  copy_choice of_long;
  (void)single_copies(of_long, rarely, mebibyte, paces(0.03, 0.09));
  CHECK(single_copies(of_long, 20 * rarely, mebibyte, paces(0.03, 0.09)) >= least_trials(20 * rarely));
}

TEST_CASE("a message that took long for once changes nothing for long, whatever else varies") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(1.0, 1.2);
  std::bernoulli_distribution lost_the_core(0.02);
  copy_choice c;
  const auto time = [&](copying how) {
    return (how == copying::single_copy ? 0.06 : 0.1) * noise(random) * (lost_the_core(random) ? 40 : 1);
  };
  CHECK(single_copies(c, 10000, mebibyte, time) > 9500);
}

TEST_CASE("what is below 128 KiB has one choice, and what is 32 MiB or more") {
  // Of a way that is not the first to be tried.
  const auto ring_after = [](std::uint64_t learnt, std::uint64_t asked) {
    copy_choice c;
    (void)single_copies(c, static_cast<int>(copy_choice::ways.size() * copy_choice::trial(learnt)), learnt,
                        paces(0.05, 0.1));
    return c.next(asked) == copying::through_ring;
  };
  CHECK(ring_after(65537, 131071));
  CHECK_FALSE(ring_after(131071, 131072));
  CHECK(ring_after(131072, 262143));
  CHECK_FALSE(ring_after(32 * mebibyte - 1, 32 * mebibyte));
  CHECK(ring_after(32 * mebibyte, std::uint64_t{1} << 40));
}

TEST_CASE("each length has a choice of its own") {
  copy_choice c;
  for (int i = 0; i < 1000; ++i) {
    (void)single_copies(c, 1, mebibyte, paces(0.1, 0.05));
    (void)single_copies(c, 1, 16 * mebibyte, paces(0.1, 0.2));
  }
  constexpr auto again = static_cast<int>(copy_choice::look_again);
  CHECK(single_copies(c, again, mebibyte, paces(0.1, 0.05)) >= again - static_cast<int>(copy_choice::trial(mebibyte)));
  CHECK(single_copies(c, again, 16 * mebibyte, paces(0.1, 0.2)) <= static_cast<int>(copy_choice::trial(16 * mebibyte)));
}

TEST_CASE("who has decided is not asked again") {
  copy_choice ring(copying::through_ring);
  CHECK(single_copies(ring, 500, mebibyte, paces(1, 0.01)) == 0);
  copy_choice single(copying::single_copy);
  CHECK(single_copies(single, 500, mebibyte, paces(0.01, 1)) == 500);
}
