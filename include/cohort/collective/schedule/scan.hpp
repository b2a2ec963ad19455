// SPDX-License-Identifier: BSL-1.0
// Schedules of scan, in place on `out`, and of exclusive_scan, from `in` to `out`: doubling where rounds count, a chain of
// segments where bytes do. All of them keep rank order.
// Chosen by select.hpp, carried out by execute.hpp like every schedule.
#pragma once

#include <cohort/collective/schedule.hpp>

namespace cohort::collective {

/// Recursive doubling: before round k a rank has combined the 2^k ranks up to itself, and it passes them 2^k ranks up.
///
/// Order: kept
/// Cost:  ceil(log2 size) rounds of one whole vector
struct recursive_doubling_scan {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    constexpr region whole{buffer::out, 0, 1};
    const int distance = 1 << k;
    if (rank + distance < size) sink.send(rank + distance, whole);
    if (rank >= distance) sink.receive_reduce(rank - distance, whole, side::left);
  }
};

/// Recursive doubling with two results: `out` has what lies below the rank, work[0] that and the rank's own operand,
/// which is what it passes up. work[1] takes arrivals that both of them need.
///
/// Order: kept
/// Cost:  ceil(log2 size) rounds of one whole vector, never more than a shift followed by a scan
struct recursive_doubling_exclusive_scan {
  int size = 1;
  int rank = 0;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return rank > 0 && rank + 2 < size ? 2 : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    constexpr region below{buffer::out, 0, 1};
    constexpr region up_to{buffer::work, 0, 1};
    constexpr region arrived{buffer::work, 1, 1};
    const int distance = 1 << k;
    const bool sends = rank + distance < size;
    // What arrived in the round before becomes part of what is sent from now on.
    if (sends && k == 1 && rank >= 1) {
      sink.copy(region{buffer::in, 0, 1}, up_to);
      sink.reduce(below, up_to, side::left);
    }
    if (sends && k > 1 && rank >= distance / 2) {
      sink.reduce(arrived, below, side::left);
      sink.reduce(arrived, up_to, side::left);
    }
    if (sends) sink.send(rank + distance, k == 0 || rank == 0 ? region{buffer::in, 0, 1} : up_to);
    if (rank < distance) return;
    if (k == 0) {
      sink.receive(rank - distance, below);
    } else if (rank + 2 * distance < size) {
      sink.receive(rank - distance, arrived);
    } else {
      sink.receive_reduce(rank - distance, below, side::left);
    }
  }
};

/// Chain: what lies below moves up in segments; each rank adds its own operand to a segment before it passes it on.
///
/// Order: kept
/// Cost:  size - 2 + segments rounds of one segment: every rank sends and receives one vector at most
struct chain_scan {
  int size = 1;
  int rank = 0;
  int segments = 1;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? size - 2 + segments : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return segments; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int leaving = k - rank;
    const int arriving = leaving + 1;
    if (rank + 1 < size && leaving >= 0 && leaving < segments) sink.send(rank + 1, region{buffer::out, leaving, 1});
    if (rank > 0 && arriving >= 0 && arriving < segments) {
      sink.receive_reduce(rank - 1, region{buffer::out, arriving, 1}, side::left);
    }
  }
};

/// The same with two results: `out` has what lies below the rank, `work` that and the rank's own operand, which is what it
/// passes up.
///
/// Order: kept
/// Cost:  as chain_scan
struct chain_exclusive_scan {
  int size = 1;
  int rank = 0;
  int segments = 1;

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? size - 2 + segments : 0; }
  [[nodiscard]] constexpr int blocks() const noexcept { return segments; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return rank > 0 && rank + 1 < size ? segments : 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int leaving = k - rank;
    const int arriving = leaving + 1;
    if (rank + 1 < size && leaving >= 0 && leaving < segments) {
      const region own{buffer::in, leaving, 1};
      const region up_to{buffer::work, leaving, 1};
      if (rank > 0) {
        sink.copy(region{buffer::out, leaving, 1}, up_to);
        sink.reduce(own, up_to, side::right);
      }
      sink.send(rank + 1, rank > 0 ? up_to : own);
    }
    if (rank > 0 && arriving >= 0 && arriving < segments) sink.receive(rank - 1, region{buffer::out, arriving, 1});
  }
};

static_assert(schedule<recursive_doubling_scan> && schedule<recursive_doubling_exclusive_scan>);
static_assert(schedule<chain_scan> && schedule<chain_exclusive_scan>);

}  // namespace cohort::collective
