// SPDX-License-Identifier: BSL-1.0
// The schedules of a barrier: by dissemination, where in round k every rank tells the rank 2^k above it what it has
// heard so far, and by a centre.
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

/// Everybody tells the centre, which tells everybody: it knows by itself who has not come.
///
/// Cost: two rounds; the centre has size - 1 messages in each
struct central_barrier {
  int size = 1;
  int rank = 0;
  int centre = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? 2 : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const bool inwards = k == 0;
    for (int other = 0; other < size; ++other) {
      if (other == centre || (rank != centre && rank != other)) continue;
      const int peer = rank == centre ? other : centre;
      if (inwards == (rank == centre)) {
        sink.receive(peer, region{buffer::out, 0, 0});
      } else {
        sink.send(peer, region{buffer::out, 0, 0});
      }
    }
  }
};

static_assert(schedule<dissemination_barrier>);
static_assert(schedule<central_barrier>);

}  // namespace cohort::collective
