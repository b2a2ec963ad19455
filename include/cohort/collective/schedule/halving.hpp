// SPDX-License-Identifier: BSL-1.0
// Recursive halving and doubling for any number of ranks: neighbours double up until a power of two is left. What the
// algorithms of all_reduce.hpp, reduce.hpp and reduce_scatter.hpp that keep rank order are made of; all of them combine
// by one and the same tree over ranks.
#pragma once

#include <cohort/collective/schedule.hpp>

namespace cohort::collective {

/// How `size` ranks become a power of two, the core: as many of the lowest ranks as need be stand in pairs (0, 1),
/// (2, 3), ..., and one rank of each pair acts for both. Core ranks thus stand for runs of ranks, in rank order.
struct core_group {
  int size = 1;
  int rank = 0;
  int actor = -1;  ///< acts for its pair if it is in one; the even rank acts in the other pairs

  [[nodiscard]] constexpr int levels() const noexcept { return floor_log2(size); }
  [[nodiscard]] constexpr int core_size() const noexcept { return 1 << levels(); }
  [[nodiscard]] constexpr int pairs() const noexcept { return size - core_size(); }
  [[nodiscard]] constexpr int core_rank_of(int r) const noexcept { return r < 2 * pairs() ? r / 2 : r - pairs(); }
  [[nodiscard]] constexpr int core_rank() const noexcept { return core_rank_of(rank); }
  [[nodiscard]] constexpr int rank_of(int core) const noexcept {
    if (core >= pairs()) return core + pairs();
    return (actor >> 1) == core ? actor : 2 * core;
  }
  [[nodiscard]] constexpr bool acts() const noexcept { return rank_of(core_rank()) == rank; }
  [[nodiscard]] constexpr bool paired() const noexcept { return rank < 2 * pairs(); }

  /// The round before: the other rank of each pair hands its operand to the one that acts.
  template <schedule_sink Sink>
  constexpr void join(region whole, Sink& sink) const {
    if (!paired()) return;
    if (acts()) {
      sink.receive_reduce(rank ^ 1, whole, rank % 2 == 0 ? side::right : side::left);
    } else {
      sink.send(rank ^ 1, whole);
    }
  }

  /// The round after: it gets the result back.
  template <schedule_sink Sink>
  constexpr void part(region whole, Sink& sink) const {
    if (!paired()) return;
    if (acts()) {
      sink.send(rank ^ 1, whole);
    } else {
      sink.receive(rank ^ 1, whole);
    }
  }
};

/// What core rank `core` of `core_size` holds after `level` halvings: one half of what it held before, by bit level-1.
[[nodiscard]] constexpr region halved(int core_size, int core, int level) noexcept {
  int first = 0;
  for (int i = 0; i < level; ++i) first += ((core >> i) & 1) * (core_size >> (i + 1));
  return region{buffer::out, first, core_size >> level};
}

/// Distance-doubling halving, in place on `out` cut into core_size() blocks: at its end every core rank has the
/// result of one block. All blocks are combined by the same balanced tree over ranks.
///
/// Order: kept
/// Cost:  floor(log2 size) rounds that move half, a quarter, ... of the vector; one of a whole vector before them
///        unless `size` is a power of two
struct halving_fold {
  int size = 1;
  int rank = 0;
  int actor = -1;

  [[nodiscard]] constexpr core_group group() const noexcept { return {size, rank, actor}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return group().levels() + (group().pairs() > 0 ? 1 : 0); }
  [[nodiscard]] constexpr int blocks() const noexcept { return group().core_size(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const core_group g = group();
    const int level = k - (g.pairs() > 0 ? 1 : 0);
    if (level < 0) return g.join(region{buffer::out, 0, blocks()}, sink);
    if (!g.acts()) return;
    const int core = g.core_rank();
    const int partner = core ^ (1 << level);
    sink.send(g.rank_of(partner), halved(blocks(), partner, level + 1));
    sink.receive_reduce(g.rank_of(partner), halved(blocks(), core, level + 1),
                        partner < core ? side::left : side::right);
  }
};

/// The way back: an all_gather of what halving_fold leaves.
///
/// Cost: as halving_fold
struct doubling_all_gather {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr core_group group() const noexcept { return {size, rank}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return group().levels() + (group().pairs() > 0 ? 1 : 0); }
  [[nodiscard]] constexpr int blocks() const noexcept { return group().core_size(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const core_group g = group();
    const int level = g.levels() - 1 - k;
    if (level < 0) return g.part(region{buffer::out, 0, blocks()}, sink);
    if (!g.acts()) return;
    const int core = g.core_rank();
    const int partner = core ^ (1 << level);
    sink.send(g.rank_of(partner), halved(blocks(), core, level + 1));
    sink.receive(g.rank_of(partner), halved(blocks(), partner, level + 1));
  }
};

/// A gather to the root of what halving_fold with actor = root leaves.
///
/// Cost: floor(log2 size) rounds, the root receives less than one vector
struct doubling_gather {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr core_group group() const noexcept { return {size, rank, root}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return group().levels(); }
  [[nodiscard]] constexpr int blocks() const noexcept { return group().core_size(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const core_group g = group();
    const int level = g.levels() - 1 - k;
    const int core = g.core_rank();
    const int from_root = core ^ g.core_rank_of(root);
    if (!g.acts() || (from_root >> (level + 1)) != 0) return;
    const int partner = core ^ (1 << level);
    if (((from_root >> level) & 1) != 0) {
      sink.send(g.rank_of(partner), halved(blocks(), core, level + 1));
    } else {
      sink.receive(g.rank_of(partner), halved(blocks(), partner, level + 1));
    }
  }
};

static_assert(schedule<halving_fold> && schedule<doubling_all_gather> && schedule<doubling_gather>);

}  // namespace cohort::collective
