// SPDX-License-Identifier: BSL-1.0
// Schedules of broadcast, in place on `out`: a tree for what fits a message, a scatter followed by an all_gather and a
// chain for more. The pipeline that beats both on large vectors has a header of its own, pipeline.hpp.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/all_gather.hpp>
#include <cohort/collective/schedule/blocks.hpp>
#include <cohort/collective/schedule/then.hpp>

namespace cohort::collective {

/// Binomial tree, relative to the root: in round k the 2^k ranks that have the vector send it 2^k ranks up.
///
/// Cost: ceil(log2 size) rounds, the root sends the whole vector in each of them
struct binomial_broadcast {
  int size = 1;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int from_root = wrap(rank - root, size);
    const int distance = 1 << k;
    if (from_root < distance) {
      if (from_root + distance < size) sink.send(wrap(rank + distance, size), region{buffer::out, 0, 1});
    } else if (from_root < 2 * distance) {
      sink.receive(wrap(rank - distance, size), region{buffer::out, 0, 1});
    }
  }
};

/// Scatter, then all_gather: the root sends each block once, the others exchange them.
///
/// Cost: 2 ceil(log2 size) rounds, every rank sends and receives less than two vectors
struct scatter_all_gather_broadcast : then<block_scatter, circulant_all_gather> {
  constexpr scatter_all_gather_broadcast(int size, int rank, int root) noexcept
      : then{block_scatter{size, rank, root}, circulant_all_gather{size, rank}} {}
};

/// Chain: the vector moves from rank to rank in segments, so that every link is busy.
///
/// Cost: size - 2 + segments rounds of one segment
struct chain_broadcast {
  int size = 1;
  int rank = 0;
  int root = 0;
  int segments = 1;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? size - 2 + segments : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return segments; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int from_root = wrap(rank - root, size);
    const int arriving = k - from_root + 1;
    const int leaving = k - from_root;
    if (from_root + 1 < size && leaving >= 0 && leaving < segments) {
      sink.send(wrap(rank + 1, size), region{buffer::out, leaving, 1});
    }
    if (from_root > 0 && arriving >= 0 && arriving < segments) {
      sink.receive(wrap(rank - 1, size), region{buffer::out, arriving, 1});
    }
  }
};

static_assert(schedule<binomial_broadcast> && schedule<scatter_all_gather_broadcast> && schedule<chain_broadcast>);

}  // namespace cohort::collective
