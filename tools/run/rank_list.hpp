// SPDX-License-Identifier: BSL-1.0
// Sets of ranks as people write them: "0,4-7". Read by --ranks, written by the status line and the reports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {

/// Result: one flag per rank. Errors: std::invalid_argument, which says what is wrong with `text`.
std::vector<bool> parse_ranks(std::string_view text, int ranks);

/// Result: "0, 4-7" for {0, 4, 5, 6, 7}; `ranks` ascend.
std::string ranks_text(const std::vector<int>& ranks);

/// Result: the number in `text` if it is digits only and at most `limit`, else -1.
int parse_count(std::string_view text, int limit);

}  // namespace cohort::tool
