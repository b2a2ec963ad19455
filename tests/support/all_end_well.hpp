// SPDX-License-Identifier: BSL-1.0
// Ranks of which each is expected to end with 0: what most tests by processes come down to.
#pragma once

#include "processes.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

namespace harness {

inline void expect_all_end_well(int ranks, cohort::task<int> (*rank_main)(cohort::communicator<cohort::cpu>),
                                const rank_options& options = {}) {
  const auto results = run_ranks(
      ranks, [rank_main](int) { return cohort::run(rank_main); }, options);
  INFO(describe(results));
  for (const auto& result : results) CHECK(result.ok());
}

}  // namespace harness
