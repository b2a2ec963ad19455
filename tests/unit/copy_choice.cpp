// SPDX-License-Identifier: BSL-1.0
// Which of two ways of copying is taken: the faster one, found by trying, and found again when that changes.
#include <cohort/transport/shm/copy_choice.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
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

/// A pace for each way.
auto paces(double ring, double single) {
  return [=](copying how) { return how == copying::through_ring ? ring : single; };
}

/// Of n messages, at most so many try the slower way, and at least so many do.
int most_trials(int n) {
  return static_cast<int>(copy_choice::trial) * (n / static_cast<int>(copy_choice::look_again) + 2);
}
int least_trials(int n) {
  return static_cast<int>(copy_choice::trial) * (n / static_cast<int>(copy_choice::look_again));
}

}  // namespace

TEST_CASE("the faster way is found, and the slower tried now and then") {
  for (const std::uint64_t bytes : {std::uint64_t{65537}, mebibyte, mebibyte << 6, std::uint64_t{1} << 40}) {
    CAPTURE(bytes);
    copy_choice near;
    const int rarely = single_copies(near, 1000, bytes, paces(0.03, 0.09));
    CHECK(rarely >= least_trials(1000));
    CHECK(rarely <= most_trials(1000));
    copy_choice far;
    const int mostly = single_copies(far, 1000, bytes, paces(0.14, 0.1));
    CHECK(mostly >= 1000 - most_trials(1000));
    CHECK(mostly <= 1000 - least_trials(1000));
  }
}

TEST_CASE("another pace is noticed, in either direction") {
  copy_choice c;
  (void)single_copies(c, 1000, mebibyte, paces(0.03, 0.09));
  // Of each length two trials are enough.
  CHECK(single_copies(c, 2000, mebibyte, paces(0.14, 0.09)) > 2000 - 3 * static_cast<int>(copy_choice::look_again));
  CHECK(single_copies(c, 2000, mebibyte, paces(0.03, 0.09)) < 3 * static_cast<int>(copy_choice::look_again));
}

TEST_CASE("ways that differ by less than it is worth do not take turns") {
  copy_choice c;
  CHECK(single_copies(c, 10000, mebibyte, paces(0.1, 0.095)) <= most_trials(10000));
}

TEST_CASE("the first message after one of the other kind is not counted") {
  copy_choice c;
  copying before = copying::single_copy;
  // A ring that nobody has used for a while is slow once.
  const auto time = [&before](copying how) {
    const bool cold = std::exchange(before, how) != how;
    return how == copying::through_ring ? (cold ? 1.0 : 0.05) : 0.09;
  };
  CHECK(single_copies(c, 5000, mebibyte, time) <= most_trials(5000));
}

TEST_CASE("a message that took long for once changes nothing for long, whatever else varies") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(1.0, 1.2);
  std::bernoulli_distribution lost_the_core(0.02);
  copy_choice c;
  const auto time = [&](copying how) {
    return (how == copying::through_ring ? 0.1 : 0.06) * noise(random) * (lost_the_core(random) ? 40 : 1);
  };
  CHECK(single_copies(c, 10000, mebibyte, time) > 9500);
}

TEST_CASE("what is below 128 KiB has one choice, and what is 32 MiB or more") {
  const auto single_after = [](std::uint64_t learnt, std::uint64_t asked) {
    copy_choice c;
    (void)single_copies(c, 16, learnt, paces(0.1, 0.05));
    return c.next(asked) == copying::single_copy;
  };
  CHECK(single_after(65537, 131071));
  CHECK_FALSE(single_after(131071, 131072));
  CHECK(single_after(131072, 262143));
  CHECK_FALSE(single_after(32 * mebibyte - 1, 32 * mebibyte));
  CHECK(single_after(32 * mebibyte, std::uint64_t{1} << 40));
}

TEST_CASE("each length has a choice of its own") {
  copy_choice c;
  for (int i = 0; i < 1000; ++i) {
    (void)single_copies(c, 1, mebibyte, paces(0.1, 0.05));
    (void)single_copies(c, 1, 16 * mebibyte, paces(0.1, 0.2));
  }
  CHECK(single_copies(c, 256, mebibyte, paces(0.1, 0.05)) >= 256 - static_cast<int>(copy_choice::trial));
  CHECK(single_copies(c, 256, 16 * mebibyte, paces(0.1, 0.2)) <= static_cast<int>(copy_choice::trial));
}

TEST_CASE("who has decided is not asked again") {
  copy_choice ring(copying::through_ring);
  CHECK(single_copies(ring, 500, mebibyte, paces(1, 0.01)) == 0);
  copy_choice single(copying::single_copy);
  CHECK(single_copies(single, 500, mebibyte, paces(0.01, 1)) == 500);
}
