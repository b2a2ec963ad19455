// SPDX-License-Identifier: BSL-1.0
// Schedules of all_reduce, in place on `out`, which holds the rank's own operand at the start. Whatever the algorithm,
// all ranks combine the operands in the same grouping, so that they get the same bits.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/all_gather.hpp>
#include <cohort/collective/schedule/fold.hpp>
#include <cohort/collective/schedule/halving.hpp>
#include <cohort/collective/schedule/then.hpp>

namespace cohort::collective {

/// Recursive doubling: in each round two ranks exchange all they have and both combine it, lower ranks on the left.
///
/// Order: kept
/// Cost:  floor(log2 size) rounds of one whole vector; two more unless `size` is a power of two
struct recursive_doubling_all_reduce {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr core_group group() const noexcept { return {size, rank}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return group().levels() + (group().pairs() > 0 ? 2 : 0); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    constexpr region whole{buffer::out, 0, 1};
    const core_group g = group();
    const int level = k - (g.pairs() > 0 ? 1 : 0);
    if (level < 0) return g.join(whole, sink);
    if (level == g.levels()) return g.part(whole, sink);
    if (!g.acts()) return;
    const int core = g.core_rank();
    const int partner = core ^ (1 << level);
    sink.send(g.rank_of(partner), whole);
    sink.receive_reduce(g.rank_of(partner), whole, partner < core ? side::left : side::right);
  }
};

/// Halving, then doubling (Rabenseifner's algorithm, with the near ranks first so that rank order is kept).
///
/// Order: kept
/// Cost:  2 floor(log2 size) rounds, less than two vectors sent and received; two more rounds, of a whole vector,
///        unless `size` is a power of two
struct halving_doubling_all_reduce : then<halving_fold, doubling_all_gather> {
  constexpr halving_doubling_all_reduce(int size, int rank) noexcept
      : then{halving_fold{size, rank}, doubling_all_gather{size, rank}} {}
};

/// Circulant reduce_scatter, then circulant all_gather.
///
/// Order: cyclic, so the functor must commute
/// Cost:  2 ceil(log2 size) rounds, 2 (size - 1) blocks of 1/size of the vector sent and received, for every size
struct circulant_all_reduce : then<circulant_fold, circulant_all_gather> {
  constexpr circulant_all_reduce(int size, int rank) noexcept
      : then{circulant_fold{size, rank}, circulant_all_gather{size, rank}} {}
};

/// Ring reduce_scatter, then ring all_gather.
///
/// Order: cyclic, so the functor must commute
/// Cost:  2 (size - 1) rounds of one block of 1/size of the vector
struct ring_all_reduce : then<ring_fold, ring_all_gather> {
  constexpr ring_all_reduce(int size, int rank) noexcept : then{ring_fold{size, rank}, ring_all_gather{size, rank}} {}
};

/// Central: everybody sends its vector to the last rank, which combines them and sends the result to everybody. The fewest messages,
/// for ranks that share cores: there each message costs a change of process, whatever the others do meanwhile.
/// The last rank, as what some ranks may call instead mostly has rank 0 for its root: where everybody waited for another, nobody
/// would find out before somebody looks who has called what.
///
/// Order: kept, from the last rank downwards: not the grouping of the others
/// Cost:  two rounds; the last rank receives size - 1 vectors and sends as many
struct central_all_reduce {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? 2 : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    constexpr region whole{buffer::out, 0, 1};
    const int centre = size - 1;
    if (rank != centre) return k == 0 ? sink.send(centre, whole) : sink.receive(centre, whole);
    for (int other = centre - 1; other >= 0; --other) {
      if (k == 0) {
        sink.receive_reduce(other, whole, side::left);
      } else {
        sink.send(other, whole);
      }
    }
  }
};

static_assert(schedule<recursive_doubling_all_reduce> && schedule<halving_doubling_all_reduce>);
static_assert(schedule<circulant_all_reduce> && schedule<ring_all_reduce> && schedule<central_all_reduce>);

}  // namespace cohort::collective
