// SPDX-License-Identifier: BSL-1.0
// The variables that tell a process which rank it is: torchrun's names, so that programs written for it run unchanged,
// and cohort's own.
#pragma once

#include "job.hpp"
#include "options.hpp"

#include <string>
#include <utility>
#include <vector>

namespace cohort::tool {

using variable = std::pair<std::string, std::string>;

/// What `cohort run` sets for the rank at `place` on this node, the exported variables (-x) included. `status`: the value
/// of COHORT_STATUS_FD; empty when there is no pipe that it could name.
std::vector<variable> rank_variables(const run_options& options, const job& shared, int place,
                                     const std::string& status = {});

/// Result: the inherited environment as "NAME=value", with `set` in place and without what other launchers left there.
std::vector<std::string> with_inherited(const std::vector<variable>& set);

/// --dry-run: the command and the variables of each rank, the secret hidden.
std::string plan_text(const run_options& options, const job& shared);

/// --print-env: the variables of one rank, the secret hidden.
std::string variables_text(const run_options& options, const job& shared, int place, const std::string& indent);

/// Result: `words` as a shell would have to be given them.
std::string shell_text(const std::vector<std::string>& words);

}  // namespace cohort::tool
