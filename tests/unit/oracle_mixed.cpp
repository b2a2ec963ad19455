// SPDX-License-Identifier: BSL-1.0
// Operations of all kinds in flight together against the oracle: completed out of order, and 200 of them at random.
// COHORT_TEST_SEED=n repeats the random calls of one seed.
#include "../support/oracle_mixed.hpp"
#include "../support/oracle_local.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>

using namespace oracle;

TEST_CASE("oracle: several operations in flight are awaited in any order") {
  const auto check = [](checker<local>& c) { return check_in_flight(c, 24); };
  const tally counts = on_local_worlds(check);
  CHECK(counts.total() == 24 * ranks_of_all_worlds);
}

TEST_CASE("oracle: 200 random calls") {
  std::vector<std::uint64_t> seeds{1, 2, 3};
  if (harness::sanitized) seeds.resize(1);
  if (const char* const given = std::getenv("COHORT_TEST_SEED")) seeds = {std::strtoull(given, nullptr, 10)};
  for (const std::uint64_t seed : seeds) {
    CAPTURE(seed);
    const auto check = [seed](checker<local>& c) { return check_random_calls(c, seed, 200); };
    const tally counts = on_local_worlds(check);
    CHECK(counts.total() == 200 * ranks_of_all_worlds);
    MESSAGE("seed " << seed << ": all right");
  }
}
