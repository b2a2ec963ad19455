// SPDX-License-Identifier: BSL-1.0
// Schedules for several hosts with several ranks each, for what fits a message: one rank of each host, its leader,
// talks to other hosts. In place on `out`, like those of all_reduce.hpp, reduce.hpp and broadcast.hpp.
#pragma once

#include <cohort/collective/hosts.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/schedule/among.hpp>
#include <cohort/collective/schedule/barrier.hpp>
#include <cohort/collective/schedule/broadcast.hpp>
#include <cohort/collective/schedule/reduce.hpp>

namespace cohort::collective {

/// Where a rank stands among those of its host and among the leaders. The leader of the root's host is the root.
struct single_leader {
  const host_table* on = nullptr;
  int rank = 0;
  int root = 0;

  [[nodiscard]] constexpr int host() const noexcept { return on->host_of(rank); }
  [[nodiscard]] constexpr int place() const noexcept { return on->place_of(rank); }
  [[nodiscard]] constexpr int count() const noexcept { return on->count(host()); }
  [[nodiscard]] constexpr int leading_place(int h) const noexcept {
    return h == on->host_of(root) ? on->place_of(root) : 0;
  }
  [[nodiscard]] constexpr int leader(int h) const noexcept { return on->rank_at(h, leading_place(h)); }
  [[nodiscard]] constexpr bool leads() const noexcept { return leader(host()) == rank; }
  /// Rounds that suffice for a tree on any host.
  [[nodiscard]] constexpr int near_rounds() const noexcept { return ceil_log2(on->most()); }

  /// A round of a schedule of this host's ranks on the whole vector.
  template <schedule Inside, schedule_sink Sink>
  constexpr void near(const Inside& steps, int k, Sink& sink) const {
    round_among(
        steps, k, [this](int p) { return on->rank_at(host(), p); }, {0, 1, 1}, sink);
  }
  /// A round of a schedule of the leaders.
  template <schedule Inside, schedule_sink Sink>
  constexpr void far(const Inside& steps, int k, Sink& sink) const {
    if (leads())
      round_among(
          steps, k, [this](int h) { return leader(h); }, {0, 1, 1}, sink);
  }

  template <schedule_sink Sink>
  constexpr void reduce_near(int k, Sink& sink) const {
    near(binomial_reduce{count(), place(), leading_place(host())}, k, sink);
  }
  template <schedule_sink Sink>
  constexpr void broadcast_near(int k, Sink& sink) const {
    near(binomial_broadcast{count(), place(), leading_place(host())}, k, sink);
  }
};

/// To the leaders, by recursive doubling among them, and back.
///
/// Order: that of the ranks on each host, then that of the hosts: the functor must commute
/// Cost:  2 ceil(log2 ranks of the largest host) rounds of one whole vector on the hosts, and floor(log2 hosts) between
///        them, or two more unless their number is a power of two
struct single_leader_all_reduce {
  single_leader at{};

  [[nodiscard]] constexpr recursive_doubling_all_reduce leaders() const noexcept { return {at.on->hosts(), at.host()}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return 2 * at.near_rounds() + leaders().rounds(); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int middle = at.near_rounds();
    const int last = middle + leaders().rounds();
    if (k < middle) {
      at.reduce_near(k, sink);
    } else if (k < last) {
      at.far(leaders(), k - middle, sink);
    } else {
      at.broadcast_near(k - last, sink);
    }
  }
};

/// To the leaders, then along a tree of them to the root.
///
/// Order: as for single_leader_all_reduce
/// Cost:  ceil(log2 ranks of the largest host) + ceil(log2 hosts) rounds of one whole vector
struct single_leader_reduce {
  single_leader at{};

  [[nodiscard]] constexpr int rounds() const noexcept { return at.near_rounds() + ceil_log2(at.on->hosts()); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    if (k < at.near_rounds()) return at.reduce_near(k, sink);
    at.far(binomial_reduce{at.on->hosts(), at.host(), at.on->host_of(at.root)}, k - at.near_rounds(), sink);
  }
};

/// Along a tree of the leaders, then on each host.
///
/// Cost: ceil(log2 hosts) + ceil(log2 ranks of the largest host) rounds of one whole vector
struct single_leader_broadcast {
  single_leader at{};

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(at.on->hosts()) + at.near_rounds(); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int between = ceil_log2(at.on->hosts());
    if (k >= between) return at.broadcast_near(k - between, sink);
    at.far(binomial_broadcast{at.on->hosts(), at.host(), at.on->host_of(at.root)}, k, sink);
  }
};

/// One way along a binomial tree whose root is rank 0, in empty messages.
struct barrier_tree {
  int size = 1;
  int rank = 0;
  bool upwards = true;

  [[nodiscard]] constexpr int rounds() const noexcept { return ceil_log2(size); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int distance = 1 << (upwards ? k : rounds() - 1 - k);
    const bool is_child = rank % (2 * distance) == distance;
    if (!is_child && (rank % (2 * distance) != 0 || rank + distance >= size)) return;
    const int peer = is_child ? rank - distance : rank + distance;
    if (is_child == upwards) {
      sink.send(peer, region{buffer::out, 0, 0});
    } else {
      sink.receive(peer, region{buffer::out, 0, 0});
    }
  }
};

/// To the leaders, by dissemination among them, and back.
///
/// Cost: 2 ceil(log2 ranks of the largest host) + ceil(log2 hosts) rounds of one empty message
struct single_leader_barrier {
  single_leader at{};

  [[nodiscard]] constexpr int rounds() const noexcept { return 2 * at.near_rounds() + ceil_log2(at.on->hosts()); }
  [[nodiscard]] constexpr int blocks() const noexcept { return 1; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int middle = at.near_rounds();
    const int last = middle + ceil_log2(at.on->hosts());
    if (k >= middle && k < last) return at.far(dissemination_barrier{at.on->hosts(), at.host()}, k - middle, sink);
    const bool upwards = k < middle;
    at.near(barrier_tree{at.count(), at.place(), upwards}, upwards ? k : k - last, sink);
  }
};

static_assert(schedule<single_leader_all_reduce> && schedule<single_leader_reduce>);
static_assert(schedule<single_leader_broadcast> && schedule<single_leader_barrier>);

}  // namespace cohort::collective
