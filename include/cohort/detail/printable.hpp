// SPDX-License-Identifier: BSL-1.0
// Durations, lists of ranks and bytes of unknown origin as one-line text for error messages.
#pragma once

#include <cohort/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::detail {

/// "5 s", "1.25 s", "300 ms"
[[nodiscard]] std::string duration_text(std::chrono::nanoseconds d);
/// The bytes between quotes, at most 64 of them, with everything that a terminal could act on escaped.
[[nodiscard]] std::string quoted(std::string_view bytes);
/// The names with commas between them, at most `most` of them.
[[nodiscard]] std::string listed(const std::vector<std::string>& names, std::size_t most = 16);
/// "rank 3", "ranks 1, 4-7": `ranks` ascends
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace cohort::detail

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/detail/impl/printable.hpp>
#endif
