// SPDX-License-Identifier: BSL-1.0
// How long a rank waits before it looks for an answer: as long as answers take, and no longer than they did.
#include <doctest/doctest.h>

#include <cohort/transport/first_look.hpp>

#include <cstdint>
#include <random>

using namespace cohort::transport;

namespace {

/// So many answers that each take so many cycles. Result: how many of the first looks were in vain.
int answers(first_look& when, int number, std::uint32_t cycles) {
  int vain = 0;
  for (int i = 0; i < number; ++i) {
    const bool there = when.cycles() >= cycles;
    vain += there ? 0 : 1;
    when.wait();
    when.came(there);
  }
  return vain;
}

}  // namespace

TEST_CASE("who is answered at once never waits") {
  first_look when;
  CHECK(when.cycles() == 0);
  CHECK(answers(when, 1000, 0) == 0);
  CHECK(when.cycles() == 0);
}

TEST_CASE("the first look comes a little after the answer, and is rarely in vain") {
  for (const std::uint32_t takes : {10U, 100U, 450U, 1000U}) {
    CAPTURE(takes);
    first_look when;
    (void)answers(when, 2000, takes);
    const int vain = answers(when, 10000, takes);
    CHECK(vain > 0);  // or it would not learn that answers come sooner
    CHECK(vain < 10000 / 4);
    CHECK(when.cycles() + takes / 16 + 2 >= takes);
    CHECK(when.cycles() <= takes + takes / 16 + 4);
  }
}

TEST_CASE("answers that take longer, or are there sooner, are soon known") {
  first_look when;
  (void)answers(when, 2000, 800);
  (void)answers(when, 500, 100);
  CHECK(when.cycles() < 120);
  (void)answers(when, 1000, 0);
  CHECK(when.cycles() < 2);
  (void)answers(when, 500, 800);
  CHECK(when.cycles() > 780);
}

TEST_CASE("nobody waits longer than the longest while, whatever the answers take") {
  first_look when;
  (void)answers(when, 5000, 1000000);
  CHECK(when.cycles() == first_look::longest);
  std::mt19937 random(3);
  for (int i = 0; i < 10000; ++i) {
    when.came(random() % 2 == 0);
    REQUIRE(when.cycles() <= first_look::longest);
  }
}
