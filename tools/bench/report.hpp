// SPDX-License-Identifier: BSL-1.0
// How `cohort bench` tells what it measured: the table of nccl-tests, CSV, JSON, or a picture.
#pragma once

#include "measure.hpp"
#include "options.hpp"

#include <string>
#include <vector>

namespace cohort::tool {

/// What stands above the rows, and one row; the table is printed as it grows.
[[nodiscard]] std::string bench_heading(const bench_options& options, int ranks);
[[nodiscard]] std::string bench_line(const bench_options& options, int ranks, const bench_row& row);

/// All of it in JSON.
[[nodiscard]] std::string bench_json(const bench_options& options, int ranks, const std::vector<bench_row>& rows);

/// Draws cohort_bench_OP.png in the current folder, by python3 with matplotlib.
///
/// Result: "", or why there is no picture
[[nodiscard]] std::string draw_bench(const bench_options& options, const std::string& json);

}  // namespace cohort::tool
