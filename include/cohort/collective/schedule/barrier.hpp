// SPDX-License-Identifier: BSL-1.0
// The schedule of a barrier: in round k every rank tells the rank 2^k above it what it has heard so far.
// Chosen by select.hpp, carried out by execute.hpp like every schedule.
#pragma once

#include <cohort/collective/schedule.hpp>

namespace cohort::collective {

/// Dissemination: after round k a rank has heard, directly or not, from the 2^(k+1) - 1 ranks below it.
///
/// Cost: ceil(log2 size) rounds of one empty message, for every size
struct dissemination_barrier {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int distance = 1 << k;
    sink.send(wrap(rank + distance, size), region{buffer::out, 0, 0});
    sink.receive(wrap(rank - distance, size), region{buffer::out, 0, 0});
  }
};

static_assert(schedule<dissemination_barrier>);

}  // namespace cohort::collective
