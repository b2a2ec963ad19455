// SPDX-License-Identifier: BSL-1.0
// The shape of a binomial tree over any number of ranks, counted from the root: how many ranks hang below each.
// Used by the trees that carry more the nearer they are to the root: blocks.hpp, gather.hpp and scatter.hpp.
#pragma once

namespace cohort::collective {

/// The number of ranks in the subtree of the rank that is `from_root` ranks above the root, itself included. They are
/// consecutive; the parent is lower by the lowest set bit of `from_root`.
[[nodiscard]] constexpr int binomial_subtree(int size, int from_root) noexcept {
  if (from_root == 0) return size;
  const int lowest_bit = from_root & -from_root;
  return lowest_bit < size - from_root ? lowest_bit : size - from_root;
}

}  // namespace cohort::collective
