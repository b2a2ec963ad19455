// SPDX-License-Identifier: BSL-1.0
// Subcommands that are programs of several ranks: under a launcher this process is one of them; else it starts them.
#pragma once

#include <string>
#include <vector>

namespace cohort::tool {

[[nodiscard]] bool started_by_a_launcher();

/// One for each processor that this process may use, at least two.
[[nodiscard]] int ranks_for_this_machine();

/// Runs `cohort WORDS...` in that many processes and waits for them. Result: the exit code of the first that failed.
int start_own_ranks(int ranks, const std::vector<std::string>& words);

}  // namespace cohort::tool
