// SPDX-License-Identifier: BSL-1.0
// The first phase of the large reductions, in place on `out`: at its end block [rank] of every rank is the result of
// all ranks. Operands are combined in cyclic order, so the functor must commute; halving.hpp keeps rank order.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/circulant.hpp>

namespace cohort::collective {

/// Circulant graph: every rank is left with a run of skip(k) partial results from its own block on, and gives the rest
/// of the run to the rank that keeps them.
///
/// Cost: ceil(log2 size) rounds, size - 1 blocks sent, received and reduced: optimal in all, for every size
struct circulant_fold {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int kept = circulant_skip(size, rounds() - 1 - k);
    const int given = circulant_skip(size, rounds() - k) - kept;
    const int above = wrap(rank + kept, size);
    sink.send(above, region{buffer::out, above, given});
    sink.receive_reduce(wrap(rank - kept, size), region{buffer::out, rank, given}, side::left);
  }
};

/// Ring: the partial result of each block travels once around and ends where it belongs.
///
/// Cost: size - 1 rounds of one block
struct ring_fold {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size - 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    sink.send(wrap(rank + 1, size), region{buffer::out, wrap(rank - 1 - k, size), 1});
    sink.receive_reduce(wrap(rank - 1, size), region{buffer::out, wrap(rank - 2 - k, size), 1}, side::left);
  }
};

static_assert(schedule<circulant_fold> && schedule<ring_fold>);

}  // namespace cohort::collective
