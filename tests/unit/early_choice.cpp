// SPDX-License-Identifier: BSL-1.0
// Whether long messages that need not be announced are wanted offered: only where that has been faster, of those that follow each
// other, however each of them came.
#include <cohort/transport/shm/early_choice.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>

using cohort::transport::early_choice;
using std::chrono::nanoseconds;

namespace {

constexpr std::uint64_t bytes = std::uint64_t{64} << 10;
constexpr int one_trial = static_cast<int>(early_choice::trial * early_choice::together);

/// Both ends of a connection: so many messages, each `early` or `offered` nanoseconds behind the one before it, of which a receiver
/// sees the last `seen`.
struct connection {
  early_choice choice{};
  early_choice::clock::time_point now = early_choice::clock::now();
  bool wanted = false;
  int late = 0;  ///< so many are under way when the sender hears what is wanted

  /// Result: how many were wanted offered
  int messages(int number, int early, int offered, int seen) {
    int as_offered = 0;
    int heard_in = 0;
    bool heard = wanted;
    for (int i = 0; i < number; ++i) {
      if (heard != wanted && heard_in-- == 0) heard = wanted;
      now += nanoseconds(heard ? offered : early);
      const bool before = wanted;
      wanted = choice.came(bytes, now - nanoseconds(seen), now);
      if (wanted != before) heard_in = late;
      as_offered += wanted ? 1 : 0;
    }
    return as_offered;
  }
};

}  // namespace

TEST_CASE("messages are sent at once until offering has been tried and found faster") {
  for (const int late : {0, 1, 63}) {
    CAPTURE(late);
    connection c;
    c.late = late;
    CHECK(c.messages(one_trial, 4000, 3000, 2000) == 0);
    CHECK(c.messages(20 * one_trial, 4000, 3000, 2000) >= 17 * one_trial);
    CHECK(c.messages(100 * one_trial, 4000, 3000, 2000) >= 90 * one_trial);
  }
}

TEST_CASE("where offering is slower it is only tried, and seldom") {
  for (const int late : {0, 63}) {
    connection c;
    c.late = late;
    const int tried = c.messages(100 * one_trial, 3000, 4000, 2000);
    CHECK(tried >= one_trial);
    CHECK(tried <= 12 * one_trial);
  }
}

TEST_CASE("what is faster later is found") {
  connection c;
  (void)c.messages(20 * one_trial, 3000, 4000, 2000);
  (void)c.messages(200 * one_trial, 4000, 3000, 2000);
  CHECK(c.messages(10 * one_trial, 4000, 3000, 2000) >= 8 * one_trial);
  (void)c.messages(400 * one_trial, 3000, 4000, 2000);
  CHECK(c.messages(10 * one_trial, 3000, 4000, 2000) <= 2 * one_trial);
}

TEST_CASE(
    "what is faster is found soon where messages that came one at a time come many at a time, or the other way round") {
  for (const int before : {100, 600, 1300}) {
    CAPTURE(before);
    connection c;
    (void)c.messages(before * one_trial, 14000, 18000, 4000);
    CHECK(c.messages(40 * one_trial, 4000, 3000, 2000) >= 25 * one_trial);
    (void)c.messages(before * one_trial, 4000, 3000, 2000);
    CHECK(c.messages(40 * one_trial, 14000, 18000, 4000) <= 15 * one_trial);
  }
}

TEST_CASE("where they come one at a time and many at a time in turns it is not tried all the time") {
  connection c;
  int as_offered = 0;
  for (int i = 0; i < 500; ++i) {
    (void)c.messages(one_trial, 14000, 18000, 4000);
    as_offered += c.messages(one_trial, 4000, 5000, 2000);
  }
  CHECK(as_offered <= 50 * one_trial);
}

TEST_CASE("messages of which the ends make little say nothing") {
  connection c;
  CHECK(c.messages(50 * one_trial, 20000, 10000, 1000) == 0);
}

TEST_CASE("a pause among others does not count") {
  for (const int offered : {3000, 5000}) {
    CAPTURE(offered);
    connection c;
    int as_offered = 0;
    for (int i = 0; i < 20 * one_trial; ++i) {
      (void)c.messages(1, 900000, 100000, 1000);
      as_offered += c.messages(4, 4000, offered, 2000);
    }
    CHECK((as_offered > 60 * one_trial) == (offered < 4000));
  }
}
