// SPDX-License-Identifier: BSL-1.0
// Bodies of communicator/groups.hpp that are no templates.
#pragma once

#include <cohort/communicator/groups.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cohort::detail {

COHORT_DECL std::vector<std::int32_t> checked_members(const front_base& calls, const std::vector<int>& list) {
  constexpr auto kind = operation_kind::subgroup;
  if (list.empty()) calls.refuse(kind, "the list of members is empty: expected at least one rank");
  std::vector<std::int32_t> result;
  std::vector<int> place(static_cast<std::size_t>(calls.size()), -1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const int r = list[i];
    if (r < 0 || r >= calls.size()) {
      calls.refuse(kind, "rank " + std::to_string(r) + " at place " + std::to_string(i) + " of the list: expected 0.." +
                             std::to_string(calls.size() - 1) + ", ranks of this communicator");
    }
    int& known = place[static_cast<std::size_t>(r)];
    if (known >= 0) {
      calls.refuse(kind, "rank " + std::to_string(r) + " is listed twice, at places " + std::to_string(known) +
                             " and " + std::to_string(i));
    }
    known = static_cast<int>(i);
    result.push_back(r);
  }
  return result;
}

}  // namespace cohort::detail
