// SPDX-License-Identifier: BSL-1.0
// Finds the word that a mistyped one was meant to be. Used for options, subcommands and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {

/// Result: the candidate with the fewest typing mistakes to `word`, or "" when none is close enough to be meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace cohort::tool
