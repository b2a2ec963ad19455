// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/negotiate.hpp.
#pragma once

#include <cohort/collective/negotiate.hpp>
#include <cohort/collective/select.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace cohort::collective {

COHORT_DECL std::vector<std::size_t> offsets_of(const detail::short_vector<std::uint64_t>& counts,
                                                std::size_t element_bytes) {
  std::vector<std::size_t> offsets(counts.size() + 1, 0);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    // Counts come from other ranks: their sum is checked before memory is asked for.
    if (counts[i] > std::numeric_limits<std::size_t>::max() / element_bytes - offsets[i])
      throw std::bad_array_new_length();
    offsets[i + 1] = offsets[i] + static_cast<std::size_t>(counts[i]);
  }
  return offsets;
}

COHORT_DECL std::vector<std::size_t> in_bytes(std::vector<std::size_t> offsets, std::size_t element_bytes) {
  for (std::size_t& o : offsets) o *= element_bytes;
  return offsets;
}

COHORT_DECL layout counts_layout(detail::short_vector<std::uint64_t>& counts) {
  return layout::uniform(bytes_of(counts.data()), sizeof(std::uint64_t), static_cast<int>(counts.size()));
}

COHORT_DECL algorithm without_turn(const call& c) {
  const algorithm how = c.signature().algorithm;
  if (how != algorithm::shared_memory) return by_messages(how);
  return c.home().selection.choose(c.signature().kind, 0, c.home().size(), true, {false, false, false, false});
}

}  // namespace cohort::collective
