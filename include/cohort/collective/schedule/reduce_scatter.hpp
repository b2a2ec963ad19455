// SPDX-License-Identifier: BSL-1.0
// Schedules of reduce_scatter: from `in`, one block per rank, to `out`, the rank's block of the result. They do not
// look at the sizes of blocks, so reduce_scatter_v uses them too.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/circulant.hpp>
#include <cohort/collective/schedule/halving.hpp>

namespace cohort::collective {

/// Circulant graph, as circulant_fold, but out of place: the first round sends from `in`, the last one ends in `out`.
///
/// Order: cyclic, so the functor must commute
/// Cost:  ceil(log2 size) rounds, size - 1 blocks sent, received and reduced
struct circulant_reduce_scatter {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? ceil_log2(size) : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return size > 2 ? size : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const buffer from = k == 0 ? buffer::in : buffer::work;
    const bool last = k + 1 == rounds();
    if (last) {
      sink.copy(region{from, rank, 1}, region{buffer::out, 0, 1});
      if (size == 1) return;
    }
    const int kept = circulant_skip(size, rounds() - 1 - k);
    const int given = circulant_skip(size, rounds() - k) - kept;
    if (k == 0 && !last) sink.copy(region{buffer::in, rank, kept}, region{buffer::work, rank, kept});
    const int above = wrap(rank + kept, size);
    sink.send(above, region{from, above, given});
    sink.receive_reduce(wrap(rank - kept, size), last ? region{buffer::out, 0, 1} : region{buffer::work, rank, given},
                        side::left);
  }
};

/// Ring: the partial result of each block travels once around and ends where it belongs.
///
/// Order: cyclic, so the functor must commute
/// Cost:  size - 1 rounds of one block
struct ring_reduce_scatter {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? size - 1 : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return size > 2 ? size : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int leaving = wrap(rank - 1 - k, size);
    const int arriving = wrap(rank - 2 - k, size);
    const region into = k + 1 == rounds() ? region{buffer::out, 0, 1} : region{buffer::work, arriving, 1};
    sink.copy(region{buffer::in, size > 1 ? arriving : rank, 1}, into);
    if (size == 1) return;
    sink.send(wrap(rank + 1, size), region{k == 0 ? buffer::in : buffer::work, leaving, 1});
    sink.receive_reduce(wrap(rank - 1, size), into, side::left);
  }
};

/// Pairwise: in round k every rank gets its block from the rank k + 1 below it. Lower ranks arrive from the nearest on
/// and are combined in `out`, higher ones from the farthest on in work[rank]; the last round joins the two.
///
/// Order: kept
/// Cost:  size rounds, the last one local; size - 1 blocks sent, received and reduced
struct pairwise_reduce_scatter {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return size > 1 ? size : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const region lower{buffer::out, 0, 1};
    const region higher{buffer::work, rank, 1};
    if (k == 0) sink.copy(region{buffer::in, rank, 1}, lower);
    if (k + 1 == size) {
      if (rank + 1 < size) sink.reduce(higher, lower, side::right);
      return;
    }
    const int above = wrap(rank + k + 1, size);
    const int below = wrap(rank - k - 1, size);
    sink.send(above, region{buffer::in, above, 1});
    if (below == size - 1) {
      sink.receive(below, higher);
    } else {
      sink.receive_reduce(below, below < rank ? lower : higher, side::left);
    }
  }
};

/// Halving by core ranks, as halving_fold, of the blocks of all ranks cut into core_size() parts of one or two blocks;
/// in the last round each block goes from the core rank at which it is complete to the rank that it is for.
///
/// Order: kept, in the grouping of all_reduce
/// Cost:  floor(log2 size) + 1 rounds, about one vector sent and received; one more round and vector unless `size` is a
///        power of two
struct halving_reduce_scatter {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr core_group group() const noexcept { return {size, rank}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return group().levels() + (group().pairs() > 0 ? 2 : 1); }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return size > 1 && group().acts() ? size : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const core_group g = group();
    const int level = k - (g.pairs() > 0 ? 1 : 0);
    const region whole{buffer::in, 0, size};
    if (level == g.levels()) return deliver(sink);
    if (level < 0 && g.paired()) {
      if (!g.acts()) return sink.send(rank ^ 1, whole);
      sink.copy(whole, region{buffer::work, 0, size});
      sink.receive_reduce(rank ^ 1, region{buffer::work, 0, size}, side::right);
    }
    if (level < 0 || !g.acts()) return;
    const int core = g.core_rank();
    const int partner = core ^ (1 << level);
    const bool first = level == 0 && !g.paired();
    const region kept = part(buffer::work, core, level + 1);
    if (first) sink.copy(part(buffer::in, core, 1), kept);
    sink.send(g.rank_of(partner), part(first ? buffer::in : buffer::work, partner, level + 1));
    sink.receive_reduce(g.rank_of(partner), kept, partner < core ? side::left : side::right);
  }

 private:
  /// Where the i-th of core_size() parts of the vector starts.
  [[nodiscard]] constexpr int start(int i) const noexcept {
    return static_cast<int>(static_cast<long long>(i) * size / group().core_size());
  }
  [[nodiscard]] constexpr region part(buffer where, int core, int level) const noexcept {
    const region parts = halved(group().core_size(), core, level);
    return region{where, start(parts.first), start(parts.first + parts.count) - start(parts.first)};
  }

  template <schedule_sink Sink>
  constexpr void deliver(Sink& sink) const {
    const core_group g = group();
    const buffer from = size > 1 ? buffer::work : buffer::in;
    const region complete = part(from, g.core_rank(), g.levels());
    // Halving leaves core rank c with the part whose number is c with its bits reversed, and the other way round.
    const int mine = static_cast<int>((static_cast<long long>(rank + 1) * g.core_size() - 1) / size);
    const int holder = g.rank_of(halved(g.core_size(), mine, g.levels()).first);
    if (holder == rank) sink.copy(region{from, rank, 1}, region{buffer::out, 0, 1});
    for (int b = complete.first; g.acts() && b < complete.first + complete.count; ++b) {
      if (b != rank) sink.send(b, region{from, b, 1});
    }
    if (holder != rank) sink.receive(holder, region{buffer::out, 0, 1});
  }
};

/// Central: everybody sends its blocks to the last rank, which combines them and sends each its own. The fewest messages,
/// for ranks that share cores: there each message costs a change of process, whatever the others do meanwhile.
///
/// Order: kept, from the last rank downwards: not the grouping of the others
/// Cost:  two rounds; the last rank receives size (size - 1) blocks and sends size - 1
struct central_reduce_scatter {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? 2 : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return size > 1 && rank == size - 1 ? size : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const region own{buffer::out, 0, 1};
    const int centre = size - 1;
    if (size == 1) return sink.copy(region{buffer::in, 0, 1}, own);
    if (rank != centre) {
      return k == 0 ? sink.send(centre, region{buffer::in, 0, size}) : sink.receive(centre, own);
    }
    const region sums{buffer::work, 0, size};
    if (k == 0) {
      sink.copy(region{buffer::in, 0, size}, sums);
    } else {
      sink.copy(region{buffer::work, centre, 1}, own);
    }
    for (int other = centre - 1; other >= 0; --other) {
      if (k == 0) {
        sink.receive_reduce(other, sums, side::left);
      } else {
        sink.send(other, region{buffer::work, other, 1});
      }
    }
  }
};

static_assert(schedule<circulant_reduce_scatter> && schedule<ring_reduce_scatter> && schedule<central_reduce_scatter>);
static_assert(schedule<pairwise_reduce_scatter> && schedule<halving_reduce_scatter>);

}  // namespace cohort::collective
