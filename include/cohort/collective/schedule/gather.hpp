// SPDX-License-Identifier: BSL-1.0
// Schedules of gather: from `in`, one block, to the root's `out`, one block per rank. The linear one does not look at
// the sizes of blocks, so gather_v uses it too.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/subtree.hpp>

namespace cohort::collective {

/// Binomial tree, relative to the root: the inner ranks collect the blocks of the ranks above them in `work`.
///
/// Cost: ceil(log2 size) rounds, the root receives size - 1 blocks
struct binomial_gather {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? ceil_log2(size) : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept {
    const int from_root = wrap(rank - root, size);
    const int subtree = binomial_subtree(size, from_root);
    return from_root > 0 && subtree > 1 ? subtree : 0;
  }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int from_root = wrap(rank - root, size);
    if (k == 0 && from_root == 0) sink.copy(region{buffer::in, 0, 1}, region{buffer::out, root, 1});
    if (k == 0 && work_blocks() > 0) sink.copy(region{buffer::in, 0, 1}, region{buffer::work, 0, 1});
    const int distance = 1 << k;
    const int place = from_root % (2 * distance);
    if (place == distance) {
      const bool leaf = work_blocks() == 0;
      sink.send(wrap(rank - distance, size), leaf ? region{buffer::in, 0, 1} : region{buffer::work, 0, work_blocks()});
    } else if (place == 0 && from_root + distance < size) {
      const int child = wrap(rank + distance, size);
      const int count = binomial_subtree(size, from_root + distance);
      sink.receive(child, from_root == 0 ? region{buffer::out, child, count} : region{buffer::work, distance, count});
    }
  }
};

/// Linear: every rank sends its block to the root.
///
/// Cost: one round, size - 1 messages of one block at the root
struct linear_gather {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int, Sink& sink) const {
    if (rank != root) return sink.send(root, region{buffer::in, 0, 1});
    sink.copy(region{buffer::in, 0, 1}, region{buffer::out, root, 1});
    for (int i = 1; i < size; ++i) {
      const int source = wrap(root + i, size);
      sink.receive(source, region{buffer::out, source, 1});
    }
  }
};

static_assert(schedule<binomial_gather> && schedule<linear_gather>);

}  // namespace cohort::collective
