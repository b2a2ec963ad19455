// SPDX-License-Identifier: BSL-1.0
// A move of so few bytes that they stand beside the words of the window, between buffers that each lie in one piece: what
// move.hpp does for any, with nothing to look up. Used by the headers of collective/ that are named like the operations.
#pragma once

#include <cohort/collective/shared/at_once.hpp>
#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/short_move.hpp>
#include <cohort/detail/config.hpp>

#include <cstddef>

namespace cohort::collective {

/// Whether what this rank gives fits there, and lies so.
[[nodiscard]] inline bool fits_beside_words(const short_move& m, int rank, int ranks) noexcept {
  return m.block > 0 && m.given(ranks) <= transport::shm_window::inline_bytes && m.has_buffers(rank);
}

/// Carries it out, if that can be done without a frame. This rank's block for itself is copied too.
///
/// Result: as of the other moves at once
/// Needs:  `fits_beside_words`
COHORT_ALIGNED [[nodiscard]] inline bool move_at_once(const cohort::detail::ticket& t, const short_move& m) {
  const int p = t.home->size();
  if (!may_be_at_once(t, m.block)) return false;
  step_at_once now(t);
  if (!now.begin(true)) return false;
  const transport::window_step& step = now.step();
  const int r = step.rank();
  const std::size_t mine = m.block * static_cast<std::size_t>(r);
  const bool gives = m.gives(r);
  const bool takes = m.takes(r);
  // What only this rank would take, nobody needs to see.
  if (gives && m.taker != r) {
    copy_short(step.short_data(r), m.in, m.given(p));
    now.gives(m.given(p));
  }
  now.raise();
  if (!takes) return now.end(), true;
  const std::size_t from_there = m.in_by_rank ? mine : 0;
  if (gives) {
    std::byte* const to = m.out + (m.out_by_rank ? mine : 0);
    if (to != m.in + from_there) copy_short(to, m.in + from_there, m.block);
  }
  if (m.giver < 0 && m.taker < 0 && !now.joined_in_turn()) return false;
  for (int k = 1; k < p; ++k) {
    const int from = step.other(k);
    if (!m.gives(from)) continue;
    if (!(m.giver < 0 && m.taker < 0 ? now.raised_by(from) : now.answered_by(from))) return false;
    copy_short(m.out + (m.out_by_rank ? m.block * static_cast<std::size_t>(from) : 0),
               step.short_data(from) + from_there, m.block);
  }
  now.end();
  return true;
}

}  // namespace cohort::collective
