// SPDX-License-Identifier: BSL-1.0
// A collective that moves blocks of one size between buffers that each lie in one piece. Used by what carries short ones out
// where they are called: shared/short_move.hpp in memory, pair_at_once.hpp by messages.
#pragma once

#include <cohort/collective/layout.hpp>

#include <cstddef>

namespace cohort::collective {

/// One rank's part of a move: what each rank that gives has for each that takes. A block of the root's for everybody, as in a
/// broadcast, is given by one rank; one for each rank, as in a scatter, lies there by rank.
struct short_move {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t block = 0;
  bool in_by_rank = false;
  bool out_by_rank = false;
  int giver = -1;
  int taker = -1;

  /// How many bytes a rank gives that gives something.
  [[nodiscard]] std::size_t given(int ranks) const noexcept {
    return block * static_cast<std::size_t>(in_by_rank ? ranks : 1);
  }
  /// A rank that gives or takes nothing needs none.
  [[nodiscard]] bool has_buffers(int rank) const noexcept {
    return (in != nullptr || !gives(rank)) && (out != nullptr || !takes(rank));
  }
  [[nodiscard]] bool gives(int rank) const noexcept { return giver < 0 || giver == rank; }
  [[nodiscard]] bool takes(int rank) const noexcept { return taker < 0 || taker == rank; }
};

}  // namespace cohort::collective
