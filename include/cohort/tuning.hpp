// SPDX-License-Identifier: BSL-1.0
// What a user may say about the choice of algorithms, as text: what messages cost, and algorithms by name. Written by
// `cohort tune`, read from COHORT_TUNING, applied when a world is joined.
#pragma once

#include <cohort/collective/link_costs.hpp>
#include <cohort/detail/config.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace cohort {

struct tuning {
  std::optional<collective::link_costs> costs{};  ///< empty: the table that is compiled in
  std::string algorithms{};                       ///< "all_reduce=ring,...": these come before what costs say
  friend bool operator==(const tuning&, const tuning&) = default;
};

/// "latency=3us, overhead=1.5us, byte=0.2ns, combine=0.1ns, all_reduce=ring": each at most once, in any order,
/// separated by commas or the ends of lines; what follows a # is a comment. A cost that is not named has its default.
///
/// Errors: invalid_argument that names the part that is wrong and what could stand there
[[nodiscard]] tuning parse_tuning(std::string_view text);

/// Text that parse_tuning understands.
[[nodiscard]] std::string to_string(const tuning& t);

/// What COHORT_TUNING means: text as above if there is a = in it, else the name of a file with such text.
///
/// Errors: io_error for a file that cannot be read; invalid_argument as parse_tuning, naming the file
[[nodiscard]] tuning read_tuning(const std::string& text_or_file);

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/tuning.hpp>
#endif
