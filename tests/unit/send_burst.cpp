// SPDX-License-Identifier: BSL-1.0
// What is a burst of messages: many one soon after the other, and nothing looked for in between.
#include <doctest/doctest.h>

#include <cohort/transport/send_burst.hpp>

#include <chrono>
#include <cstdint>
#include <thread>

namespace {

using cohort::transport::send_burst;

/// How many of so many messages are part of a burst; before every `each`th of them this rank looks for some.
int in_bursts(send_burst& burst, int messages, int each) {
  static std::uint64_t looks = 0;
  int found = 0;
  for (int i = 0; i < messages; ++i) {
    if (i % each == 0) ++looks;
    found += burst.goes_on(looks) ? 1 : 0;
  }
  return found;
}

}  // namespace

TEST_CASE("send_burst: who looks for a message after each few sends no burst") {
  send_burst burst;
  for (int each = 1; each < static_cast<int>(send_burst::alone_first); ++each)
    CHECK(in_bursts(burst, 10000, each) == 0);
}

TEST_CASE("send_burst: the first few after a look leave by themselves, those behind them are a burst") {
  constexpr int alone = static_cast<int>(send_burst::alone_first) - 1;
  send_burst burst;
  // This thread may lose its processor between any two.
  const int found = in_bursts(burst, 10000, 10000);
  CHECK(found > 5000);
  CHECK(found <= 10000 - alone);
  const int in_hundreds = in_bursts(burst, 10000, 100);
  CHECK(in_hundreds > 5000);
  CHECK(in_hundreds <= 100 * (100 - alone));
}

TEST_CASE("send_burst: messages that are far apart are none, however many there are") {
  send_burst burst;
  int found = 0;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(5 * send_burst::longest_gap);
    found += burst.goes_on(1) ? 1 : 0;
  }
  CHECK(found == 0);
}
