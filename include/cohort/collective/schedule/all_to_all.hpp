// SPDX-License-Identifier: BSL-1.0
// Schedules of all_to_all: block j of `in` becomes block [rank] of rank j's `out`. The pairwise one does not look at
// the sizes of blocks, so all_to_all_v uses it too.
#pragma once

#include <cohort/collective/schedule.hpp>

namespace cohort::collective {

/// Bruck: a block for the rank j above travels over the distances 2^k of the bits of j, in one message with all others
/// that go the same way. A block on its way waits in `out`, where the block that took the same way will end.
///
/// Cost: ceil(log2 size) rounds of at most size/2 blocks, each copied twice a round
struct bruck_all_to_all {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? ceil_log2(size) : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 2 * (size / 2); }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    if (k == 0) sink.copy(region{buffer::in, rank, 1}, region{buffer::out, rank, 1});
    if (size == 1) return;
    if (k > 0) unpack(1 << (k - 1), sink);
    const int distance = 1 << k;
    const int moved = pack(distance, sink);
    sink.send(wrap(rank + distance, size), region{buffer::work, 0, moved});
    // Nothing that arrives in the last round has further to go, and all of it is one run.
    sink.receive(wrap(rank - distance, size), k + 1 == rounds() ? region{buffer::out, wrap(rank + 1, size), moved}
                                                                : region{buffer::work, size / 2, moved});
  }

 private:
  /// The highest multiple of `distance` below size with that bit set: where the last run of blocks to move starts.
  [[nodiscard]] constexpr int last_run(int distance) const noexcept {
    const int run = (size - 1) / distance;
    return (run % 2 == 1 ? run : run - 1) * distance;
  }
  [[nodiscard]] constexpr int run_length(int first, int distance) const noexcept {
    return first + distance < size ? distance : size - first;
  }

  /// To the first half of `work` goes, farthest destination first, every block whose distance has the bit `distance`.
  /// A block that makes its first hop comes from `in`, and is the nearest of its run.
  template <schedule_sink Sink>
  constexpr int pack(int distance, Sink& sink) const {
    int packed = 0;
    for (int first = last_run(distance); first > 0; first -= 2 * distance) {
      const int waiting = run_length(first, distance) - 1;
      if (waiting > 0) {
        sink.copy(region{buffer::out, wrap(rank - first - waiting, size), waiting},
                  region{buffer::work, packed, waiting});
      }
      sink.copy(region{buffer::in, wrap(rank + first, size), 1}, region{buffer::work, packed + waiting, 1});
      packed += waiting + 1;
    }
    return packed;
  }

  template <schedule_sink Sink>
  constexpr void unpack(int distance, Sink& sink) const {
    int unpacked = 0;
    for (int first = last_run(distance); first > 0; first -= 2 * distance) {
      const int length = run_length(first, distance);
      sink.copy(region{buffer::work, size / 2 + unpacked, length},
                region{buffer::out, wrap(rank - first - length + 1, size), length});
      unpacked += length;
    }
  }
};

/// Pairwise: every block goes straight to its destination, `window` blocks of a rank at a time.
///
/// Cost: ceil((size - 1) / window) rounds of `window` messages of one block
struct pairwise_all_to_all {
  int size = 1;
  int rank = 0;
  int window = 4;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? (size - 2) / window + 1 : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    if (k == 0) sink.copy(region{buffer::in, rank, 1}, region{buffer::out, rank, 1});
    const int first = 1 + k * window;
    for (int i = first; i < size && i - first < window; ++i) {
      const int above = wrap(rank + i, size);
      const int below = wrap(rank - i, size);
      sink.send(above, region{buffer::in, above, 1});
      sink.receive(below, region{buffer::out, below, 1});
    }
  }
};

/// Central: everybody sends its blocks to the last rank, which sorts them and sends everybody its own. The fewest messages,
/// for ranks that share cores: there each message costs a change of process, whatever the others do meanwhile.
///
/// Cost: two rounds; the last rank receives and sends size (size - 1) blocks and copies as many
struct central_all_to_all {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? 2 : 1; }
  [[nodiscard]] constexpr int blocks() const noexcept { return size; }
  /// A row from each rank, then a row for each.
  [[nodiscard]] constexpr int work_blocks() const noexcept {
    return size > 1 && rank == size - 1 ? 2 * size * size : 0;
  }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int centre = size - 1;
    if (rank != centre) {
      return k == 0 ? sink.send(centre, region{buffer::in, 0, size})
                    : sink.receive(centre, region{buffer::out, 0, size});
    }
    if (k + 1 == rounds()) sort(sink);
    for (int other = 0; other < centre; ++other) {
      if (k == 0) {
        sink.receive(other, region{buffer::work, other * size, size});
      } else {
        sink.send(other, region{buffer::work, (size + other) * size, size});
      }
    }
  }

 private:
  template <schedule_sink Sink>
  constexpr void sort(Sink& sink) const {
    for (int to = 0; to < size; ++to) {
      for (int from = 0; from < size; ++from) {
        sink.copy(from == rank ? region{buffer::in, to, 1} : region{buffer::work, from * size + to, 1},
                  to == rank ? region{buffer::out, from, 1} : region{buffer::work, (size + to) * size + from, 1});
      }
    }
  }
};

static_assert(schedule<bruck_all_to_all> && schedule<pairwise_all_to_all> && schedule<central_all_to_all>);

}  // namespace cohort::collective
