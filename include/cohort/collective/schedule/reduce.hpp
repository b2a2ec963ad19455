// SPDX-License-Identifier: BSL-1.0
// Schedules of reduce, in place on `out`, which holds the rank's own operand at the start and, at the root, the result
// at the end; the `out` of the other ranks is scratch. The pipeline for large vectors is in pipeline.hpp.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/blocks.hpp>
#include <cohort/collective/schedule/fold.hpp>
#include <cohort/collective/schedule/halving.hpp>
#include <cohort/collective/schedule/then.hpp>

namespace cohort::collective {

/// Binomial tree that ends at the root and yet keeps rank order: a rank passes on what it has to the one that differs
/// from it in the lowest bit in which it differs from the root. The grouping is that of all_reduce, for every root.
///
/// Order: kept
/// Cost:  ceil(log2 size) rounds of one whole vector
struct binomial_reduce {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr core_group group() const noexcept { return {size, rank, root}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    constexpr region whole{buffer::out, 0, 1};
    const core_group g = group();
    const int bit = 1 << k >> (g.pairs() > 0 ? 1 : 0);
    if (bit == 0) return g.join(whole, sink);
    const int core = g.core_rank();
    const int from_root = core ^ g.core_rank_of(root);
    if (!g.acts() || from_root % bit != 0) return;
    const int partner = core ^ bit;
    if ((from_root & bit) != 0) {
      sink.send(g.rank_of(partner), whole);
    } else {
      sink.receive_reduce(g.rank_of(partner), whole, partner < core ? side::left : side::right);
    }
  }
};

/// Circulant reduce_scatter, then the blocks are gathered.
///
/// Order: cyclic, so the functor must commute
/// Cost:  2 ceil(log2 size) rounds, less than two vectors sent or received
struct reduce_scatter_gather_reduce : then<circulant_fold, block_gather> {
  constexpr reduce_scatter_gather_reduce(int size, int rank, int root) noexcept
      : then{circulant_fold{size, rank}, block_gather{size, rank, root}} {}
};

/// Halving, then the blocks are gathered.
///
/// Order: kept
/// Cost:  2 floor(log2 size) rounds, less than two vectors sent or received; one more round, of a whole vector,
///        unless `size` is a power of two
struct halving_gather_reduce : then<halving_fold, doubling_gather> {
  constexpr halving_gather_reduce(int size, int rank, int root) noexcept
      : then{halving_fold{size, rank, root}, doubling_gather{size, rank, root}} {}
};

static_assert(schedule<binomial_reduce> && schedule<reduce_scatter_gather_reduce> && schedule<halving_gather_reduce>);

}  // namespace cohort::collective
