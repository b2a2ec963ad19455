// SPDX-License-Identifier: BSL-1.0
// What a rank gives and takes in a collective in which nothing is combined, for the ways to carry it out among ranks that share
// memory: move.hpp and single_copy.hpp of this folder.
#pragma once

#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/shared/step_bytes.hpp>
#include <cohort/detail/hand_back.hpp>
#include <cohort/transport/shm/window.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cohort::collective {

/// One rank's part of such a collective. `in` and `out` have one block, or one for each rank.
struct window_move {
  layout in{};
  layout out{};
  bool in_by_rank = false;  ///< block k of `in` is for rank k; otherwise its one block, or `in_block`, is for all
  int in_block = 0;
  bool out_by_rank = false;     ///< what rank k gives goes to block k of `out`; otherwise to its one block
  int giver = -1;               ///< only this rank gives; -1: every rank
  int taker = -1;               ///< only this rank takes; -1: every rank
  std::size_t longest = 0;      ///< bytes of the longest block
  bool sizes_are_known = true;  ///< alike by every rank; otherwise they are told first, and held against each other
  bool has_own = false;         ///< this rank gives itself a block too, which nobody else needs to see

  [[nodiscard]] bool is_given_by(int rank) const noexcept { return giver < 0 ? taker != rank : giver == rank; }
  [[nodiscard]] bool is_taken_by(int rank) const noexcept { return taker < 0 || taker == rank; }
  /// Of the buffers of all ranks; where one is both, once.
  [[nodiscard]] std::size_t bytes_on_host(int ranks) const noexcept {
    const auto all = static_cast<std::size_t>(ranks);
    const std::size_t given = (giver < 0 ? all : 1) * (in_by_rank ? all : 1);
    const std::size_t taken = (taker < 0 ? all : 1) * (out_by_rank ? all : 1);
    return longest * (given + taken);
  }
  [[nodiscard]] bool goes(int from, int to) const noexcept {
    return is_taken_by(to) && from != to && (giver < 0 || giver == from);
  }
  /// Whether of what a rank gives nobody reads what another one does.
  [[nodiscard]] bool read_by_one(int ranks) const noexcept { return in_by_rank || taker >= 0 || ranks == 2; }
  /// Who reads what a rank gives in its slot; what stands beside the words is left as it is read.
  [[nodiscard]] cohort::detail::readers read_by(const transport::shm_window& window) const noexcept {
    if (tiny(window.size())) return cohort::detail::readers::many;
    return read_by_one(window.size()) ? cohort::detail::readers::one : window.readers_of_all(giver >= 0);
  }
  /// Whether what one rank gives to all is short enough to stand beside the word that raises it.
  [[nodiscard]] bool tiny(int ranks) const noexcept {
    return sizes_are_known && longest <= transport::shm_window::inline_bytes &&
           longest * blocks(ranks) <= transport::shm_window::inline_bytes;
  }
  /// From one block to the next in a slot that holds so many bytes of each.
  [[nodiscard]] static constexpr std::size_t stride(std::size_t bytes, bool tiny) noexcept {
    return tiny ? bytes : (bytes + 63) / 64 * 64;
  }
  /// Bytes of a rank's slot that all blocks take.
  [[nodiscard]] std::size_t in_a_slot(int ranks) const noexcept { return stride(longest, false) * blocks(ranks); }
  /// Bytes of every block that are moved in one step.
  [[nodiscard]] std::size_t chunk(const group& g, std::size_t capacity) const noexcept {
    const std::size_t room = capacity / blocks(g.size()) / 64 * 64;
    if (giver >= 0) return std::min(room, step_of_giver(longest, two_on_cores(g)));
    // Who takes from several goes to another one, and need not wait for a second half.
    if (g.size() > 2) return room;
    return std::min(room, taker >= 0 ? step_of_taker(longest) : step_of_both(longest, two_on_cores(g)));
  }

  /// Copies bytes [at, at + bytes) of this rank's block for itself: what the others wait for comes first. Who takes from all
  /// is not waited for, and copies all of it while they fill their parts.
  void copy_own(int rank, std::size_t at, std::size_t bytes) const {
    if (!has_own || (taker >= 0 && at > 0)) return;
    if (taker >= 0) bytes = ~std::size_t{0};
    const int from = in_by_rank ? rank : in_block;
    const int to = out_by_rank ? rank : 0;
    const transport::piece source = in.together(from, 1);
    const transport::piece target = out.together(to, 1);
    if (source.data == nullptr || target.data == nullptr) {
      if (at == 0) detail::copy_region(in, {buffer::in, from, 1}, out, {buffer::out, to, 1});
    } else if (source.data != target.data && at < source.bytes) {
      std::memmove(target.data + at, source.data + at, std::min(bytes, source.bytes - at));
    }
  }

 private:
  [[nodiscard]] std::size_t blocks(int ranks) const noexcept {
    return static_cast<std::size_t>(in_by_rank ? ranks : 1);
  }
};

}  // namespace cohort::collective
