// SPDX-License-Identifier: BSL-1.0
// The selection table that follows from what messages cost: for every operation the algorithm that the model says is
// fastest, from which size on. Made once for a communicator that has costs of its own.
#pragma once

#include <cohort/collective/cost_model.hpp>
#include <cohort/collective/link_costs.hpp>
#include <cohort/collective/select.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace cohort::collective {

namespace detail {

/// The fastest algorithm for a call; of those that are about equal the one that is listed first. Reductions that keep
/// rank order must all combine by one tree over the ranks (see default_selection): the pairwise one does not.
[[nodiscard]] inline std::optional<algorithm> fastest(operation_kind kind, std::size_t bytes, int ranks,
                                                      bool commutative, const link_costs& costs) {
  constexpr double worth_it = 0.98;  // less is rounding, or an algorithm that is the other at this size
  std::optional<algorithm> best;
  double seconds = 0;
  for (const implementation& i : implementations) {
    if (i.operation != kind || needs_places(i.algorithm) || (i.needs_commutative && !commutative) ||
        (reduces(kind) && i.algorithm == algorithm::pairwise)) {
      continue;
    }
    const double taken = predicted_seconds(kind, i.algorithm, bytes, ranks, costs);
    if (best && taken >= seconds * worth_it) continue;
    best = i.algorithm;
    seconds = taken;
  }
  return best;
}

/// Adds the rows of an operation: those for the longest vectors first, as they are tried in that order.
inline void add_rows(std::vector<selection_row>& rows, operation_kind kind, int ranks, bool commutative,
                     const link_costs& costs) {
  constexpr int longest = 32;  // above 4 GiB nothing changes any more
  std::vector<selection_row> found;
  const auto at = [&](std::size_t bytes) { return fastest(kind, bytes, ranks, commutative, costs); };
  for (int k = 0; k <= longest; ++k) {
    const std::size_t bytes = k == 0 ? 0 : std::size_t{1} << k;
    const auto best = at(bytes);
    if (!best) return;
    if (!found.empty() && found.back().algorithm == *best) continue;
    std::size_t below = bytes / 2;
    std::size_t from = bytes;
    while (!found.empty() && from - below > 1) {
      const std::size_t middle = below + (from - below) / 2;
      (at(middle) == *best ? from : below) = middle;
    }
    found.push_back({kind, from, 1, commutative, *best});
  }
  rows.insert(rows.end(), found.rbegin(), found.rend());
}

}  // namespace detail

/// The table for a communicator of that many ranks.
///
/// Result: every operation of `base` has the algorithms that the model says are fastest; what was overridden in `base`
///         stays so, and so do a backend's own collectives, which are tried first
/// Cost:   some 10 000 evaluations of the model
[[nodiscard]] inline selection_table fitted(const selection_table& base, int ranks, const link_costs& costs) {
  std::vector<selection_row> rows;
  for (const selection_row& row : base.rows()) {
    if (row.algorithm == algorithm::native) rows.push_back(row);
  }
  for (unsigned k = 1; k <= static_cast<unsigned>(last_operation_kind); ++k) {
    const auto kind = static_cast<operation_kind>(k);
    std::vector<selection_row> any;
    std::vector<selection_row> commutative;
    detail::add_rows(any, kind, ranks, false, costs);
    detail::add_rows(commutative, kind, ranks, true, costs);
    bool differ = commutative.size() != any.size();
    for (std::size_t i = 0; !differ && i < any.size(); ++i) {
      differ = any[i].algorithm != commutative[i].algorithm || any[i].min_bytes != commutative[i].min_bytes;
    }
    if (differ) rows.insert(rows.end(), commutative.begin(), commutative.end());
    rows.insert(rows.end(), any.begin(), any.end());
  }
  selection_table table(rows, base.has_natives());
  for (unsigned k = 1; k <= static_cast<unsigned>(last_operation_kind); ++k) {
    const auto kind = static_cast<operation_kind>(k);
    if (const auto wanted = base.override_of(kind)) table.override_with(kind, *wanted);
  }
  return table;
}

}  // namespace cohort::collective
