// SPDX-License-Identifier: BSL-1.0
// The texts that tell how a run went: who failed first and what became of the others, who has joined, who still runs.
#pragma once

#include "job.hpp"
#include "options.hpp"
#include "rank_process.hpp"

#include <string>
#include <vector>

namespace cohort::tool {

/// The bordered block about `first`, the root cause, and every other rank.
std::vector<std::string> failure_block(const run_options& options, const job& shared,
                                       const std::vector<rank_process>& ranks, const rank_process& first,
                                       steady::time_point started);

/// One line per rank: what it is doing now.
std::vector<std::string> state_lines(const std::vector<rank_process>& ranks, steady::time_point now);

/// "2/4 joined, waiting for 1, 3"; without the second half when all have.
std::string joined_text(const std::vector<rank_process>& ranks);

/// "rank 2" or "ranks 0, 4-7"; empty for none.
std::string named_ranks(const std::vector<int>& ranks);

/// DIR/<run id>/<rank>, or DIR/<run id>/attempt_<n>/<rank> where there may be several
std::string log_directory(const run_options& options, const job& shared, int rank);

/// "2 s", "0.25 s"
std::string seconds_text(double seconds);

}  // namespace cohort::tool
