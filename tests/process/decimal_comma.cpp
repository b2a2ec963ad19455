// SPDX-License-Identifier: BSL-1.0
// Ranks of a program that has set a locale with a decimal comma: what the environment says, and what ranks tell each
// other, has a point all the same.
#include "../support/decimal_comma.hpp"
#include "../support/processes.hpp"
#include "../support/text.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <clocale>
#include <cstdio>

namespace {

int meet(int) {
  return cohort::run([](cohort::communicator<cohort::cpu> world) -> cohort::task<> {
    const int sum = co_await world.all_reduce(world.rank() + 1, cohort::sum{});
    std::printf("%d with %s\n", sum, std::localeconv()->decimal_point);
  });
}

}  // namespace

TEST_CASE("decimal comma: the environment and the tuning of rank 0 are read as ever") {
  const harness::decimal_comma locale;
  if (!locale.made()) {
    MESSAGE(harness::decimal_comma::absent);
    return;
  }
  harness::rank_options options;
  options.environment = {{"COHORT_TIMEOUT", "29.5"},
                         {"COHORT_JOIN_TIMEOUT", "29.5"},
                         {"COHORT_PEER_TIMEOUT", "9.5"},
                         {"COHORT_TUNING", "latency=3.5us,byte=0.25ns"}};
  const auto ranks = harness::run_ranks(2, meet, options);
  INFO(harness::describe(ranks));
  for (const auto& each : ranks) {
    CHECK(each.exit_code == 0);
    CHECK(each.out == "3 with ,\n");
  }
  // A comma is no part of a number here, whatever the locale.
  options.environment = {{"COHORT_TIMEOUT", "29,5"}};
  const auto refused = harness::run_ranks(1, meet, options);
  CHECK(refused[0].exit_code == 2);
  CHECK(harness::contains(refused[0].err, "COHORT_TIMEOUT=\"29,5\": expected seconds, more than 0"));
}
