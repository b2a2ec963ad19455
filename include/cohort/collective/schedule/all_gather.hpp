// SPDX-License-Identifier: BSL-1.0
// Schedules of all_gather, in place on `out`: one block per rank, block [rank] is there at the start. They do not look
// at the sizes of blocks, so all_gather_v uses them too; broadcast.hpp and all_reduce.hpp end with them.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/circulant.hpp>

namespace cohort::collective {

/// Circulant graph: every rank holds the run of skip(k) blocks from its own on, and fetches the next ones.
///
/// Cost: ceil(log2 size) rounds, size - 1 blocks sent and received: optimal in both, for every size
struct circulant_all_gather {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int held = circulant_skip(size, k);
    const int fetched = circulant_skip(size, k + 1) - held;
    const int above = wrap(rank + held, size);
    sink.send(wrap(rank - held, size), region{buffer::out, rank, fetched});
    sink.receive(above, region{buffer::out, above, fetched});
  }
};

/// Ring: every block travels once around. For networks on which only neighbours have a link of their own.
///
/// Cost: size - 1 rounds of one block
struct ring_all_gather {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size - 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    sink.send(wrap(rank + 1, size), region{buffer::out, wrap(rank - k, size), 1});
    sink.receive(wrap(rank - 1, size), region{buffer::out, wrap(rank - 1 - k, size), 1});
  }
};

/// Linear: every rank sends its block to every other one.
///
/// Cost: one round of size - 1 messages of one block
struct linear_all_gather {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? 1 : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int, Sink& sink) const {
    // Each rank starts with another peer, so that nobody is addressed by all at once.
    for (int i = 1; i < size; ++i) {
      const int below = wrap(rank - i, size);
      sink.send(wrap(rank + i, size), region{buffer::out, rank, 1});
      sink.receive(below, region{buffer::out, below, 1});
    }
  }
};

/// Central: everybody sends its block to the last rank, which sends all of them to everybody. The fewest messages, for ranks
/// that share cores: there each message costs a change of process, whatever the others do meanwhile.
///
/// Cost: two rounds; the last rank receives size - 1 blocks and sends size (size - 1)
struct central_all_gather {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? 2 : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const region all{buffer::out, 0, size};
    const int centre = size - 1;
    if (rank != centre) return k == 0 ? sink.send(centre, region{buffer::out, rank, 1}) : sink.receive(centre, all);
    for (int other = 0; other < centre; ++other) {
      if (k == 0) {
        sink.receive(other, region{buffer::out, other, 1});
      } else {
        sink.send(other, all);
      }
    }
  }
};

static_assert(schedule<circulant_all_gather> && schedule<ring_all_gather> && schedule<linear_all_gather>);
static_assert(schedule<central_all_gather>);

}  // namespace cohort::collective
