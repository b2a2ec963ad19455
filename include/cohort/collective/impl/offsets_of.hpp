// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/reduce_scatter.hpp that are no templates.
#pragma once

#include <cohort/collective/reduce_scatter.hpp>

#include <cstddef>

namespace cohort::collective {

COHORT_DECL detail::short_vector<std::size_t> offsets_of(const layout& blocks) {
  detail::short_vector<std::size_t> offsets(static_cast<std::size_t>(blocks.blocks()) + 1);
  for (std::size_t k = 0; k + 1 < offsets.size(); ++k)
    offsets[k + 1] = offsets[k] + blocks.bytes(static_cast<int>(k), 1);
  return offsets;
}

}  // namespace cohort::collective
