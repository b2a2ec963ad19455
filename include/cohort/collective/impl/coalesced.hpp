// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/coalesced.hpp that are no templates.
#pragma once

#include <cohort/collective/coalesced.hpp>

#include <algorithm>
#include <cstddef>

namespace cohort::collective {

COHORT_DECL void joined_vector::add(std::byte* data, std::size_t bytes) {
  runs_.push_back({data, bytes});
  count_ += bytes / element_bytes_;
}

COHORT_DECL layout joined_vector::cut(int blocks) {
  cut_runs_.clear();
  starts_.assign(1, 0);
  const auto n = static_cast<std::size_t>(blocks);
  auto at = runs_.begin();
  std::size_t used = 0;
  for (std::size_t b = 0; b < n; ++b) {
    std::size_t left = (count_ / n + (b < count_ % n ? 1 : 0)) * element_bytes_;
    while (left > 0) {
      const std::size_t part = std::min(left, at->bytes - used);
      if (part > 0) cut_runs_.push_back({at->data + used, part});
      left -= part;
      used += part;
      if (used == at->bytes) {
        ++at;
        used = 0;
      }
    }
    starts_.push_back(cut_runs_.size());
  }
  return layout::table(cut_runs_.data(), starts_.data(), blocks);
}

}  // namespace cohort::collective
