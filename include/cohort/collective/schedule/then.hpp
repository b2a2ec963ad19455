// SPDX-License-Identifier: BSL-1.0
// Sequence of two schedules over the same blocks: all rounds of the first, then all rounds of the second.
// The collectives of broadcast.hpp, reduce.hpp and all_reduce.hpp that have two phases are made with it.
#pragma once

#include <cohort/collective/schedule.hpp>

namespace cohort::collective {

/// `first`, then `second`. Both must cut the vector into the same blocks.
template <schedule First, schedule Second>
struct then {
  First first;
  Second second;

  [[nodiscard]] constexpr int rounds() const noexcept { return first.rounds() + second.rounds(); }
  [[nodiscard]] constexpr int blocks() const noexcept { return first.blocks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept {
    return first.work_blocks() < second.work_blocks() ? second.work_blocks() : first.work_blocks();
  }
  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    if (k < first.rounds()) {
      first.round(k, sink);
    } else {
      second.round(k - first.rounds(), sink);
    }
  }
};

}  // namespace cohort::collective
