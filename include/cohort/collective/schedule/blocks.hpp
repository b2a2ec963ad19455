// SPDX-License-Identifier: BSL-1.0
// Moving whole vectors block by block along a binomial tree, in place on `out` and with block [rank] for each rank:
// the first half of a large broadcast (broadcast.hpp) and the second half of a large reduce (reduce.hpp).
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/subtree.hpp>

namespace cohort::collective {

/// From the root's `out` to block [rank] of every rank's `out`.
struct block_scatter {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int from_root = wrap(rank - root, size);
    const int distance = 1 << (rounds() - 1 - k);
    const int place = from_root % (2 * distance);
    if (place == distance) {
      sink.receive(wrap(rank - distance, size), region{buffer::out, rank, binomial_subtree(size, from_root)});
    } else if (place == 0 && from_root + distance < size) {
      const int child = wrap(rank + distance, size);
      sink.send(child, region{buffer::out, child, binomial_subtree(size, from_root + distance)});
    }
  }
};

/// From block [rank] of every rank's `out` to the root's `out`; the `out` of other ranks is used on the way.
struct block_gather {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int from_root = wrap(rank - root, size);
    const int distance = 1 << k;
    const int place = from_root % (2 * distance);
    if (place == distance) {
      sink.send(wrap(rank - distance, size), region{buffer::out, rank, binomial_subtree(size, from_root)});
    } else if (place == 0 && from_root + distance < size) {
      const int child = wrap(rank + distance, size);
      sink.receive(child, region{buffer::out, child, binomial_subtree(size, from_root + distance)});
    }
  }
};

static_assert(schedule<block_scatter> && schedule<block_gather>);

}  // namespace cohort::collective
