// SPDX-License-Identifier: BSL-1.0
// Schedules for several hosts with several ranks each, for large vectors: every rank of a host leads a slice of the
// vector and talks to the leaders of that slice on other hosts, so that what crosses between hosts crosses once and
// every rank carries a part of it. In place on `out`.
#pragma once

#include <cohort/collective/hosts.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/schedule/among.hpp>
#include <cohort/collective/schedule/broadcast.hpp>
#include <cohort/collective/schedule/reduce.hpp>

namespace cohort::collective {

/// As many slices as the largest host has ranks, each with a leader on every host: on smaller ones a rank leads several.
/// A slice has a block for each host.
struct multi_leader {
  const host_table* on = nullptr;
  int rank = 0;

  [[nodiscard]] constexpr int slices() const noexcept { return on->most(); }
  [[nodiscard]] constexpr int blocks() const noexcept { return slices() * on->hosts(); }
  [[nodiscard]] constexpr int host() const noexcept { return on->host_of(rank); }
  [[nodiscard]] constexpr int leader(int h, int s) const noexcept { return on->rank_at(h, s % on->count(h)); }
  [[nodiscard]] constexpr region whole_slice(int s) const noexcept {
    return {buffer::out, s * on->hosts(), on->hosts()};
  }

  /// Every rank's slices to their leaders on its host, which combine them in the order of its ranks.
  template <schedule_sink Sink>
  constexpr void fold_near(Sink& sink) const {
    const int here = host();
    for (int s = 0; s < slices(); ++s) {
      const int leads = leader(here, s);
      if (leads != rank) {
        sink.send(leads, whole_slice(s));
        continue;
      }
      const int mine = on->place_of(rank);
      for (int p = mine - 1; p >= 0; --p) sink.receive_reduce(on->rank_at(here, p), whole_slice(s), side::left);
      for (int p = mine + 1; p < on->count(here); ++p) {
        sink.receive_reduce(on->rank_at(here, p), whole_slice(s), side::right);
      }
    }
  }
  /// From the leaders on a host to its other ranks, but for one that has the vector already.
  template <schedule_sink Sink>
  constexpr void spread_near(Sink& sink, int but = -1) const {
    const int here = host();
    for (int s = 0; s < slices(); ++s) {
      const int leads = leader(here, s);
      if (leads != rank && rank != but) sink.receive(leads, whole_slice(s));
      for (int p = 0; leads == rank && p < on->count(here); ++p) {
        const int other = on->rank_at(here, p);
        if (other != rank && other != but) sink.send(other, whole_slice(s));
      }
    }
  }
  /// Every slice from the root to its leader on the root's host, or back.
  template <schedule_sink Sink>
  constexpr void deal(Sink& sink, int root, bool outwards) const {
    if (!on->near(rank, root)) return;
    for (int s = 0; s < slices(); ++s) {
      const int leads = leader(host(), s);
      if (leads == root || (rank != root && rank != leads)) continue;
      const int peer = rank == root ? leads : root;
      if (outwards == (rank == root)) sink.send(peer, whole_slice(s));
      else sink.receive(peer, whole_slice(s));
    }
  }
  /// A round of a schedule of the leaders of each slice that this rank leads; it counts a block for each host.
  template <schedule Inside, schedule_sink Sink>
  constexpr void far(const Inside& steps, int k, Sink& sink) const {
    const int width = on->hosts() / steps.blocks();
    for (int s = 0; s < slices(); ++s) {
      if (leader(host(), s) != rank) continue;
      const slice part{s * on->hosts(), steps.blocks(), width};
      round_among(
          steps, k, [this, s](int h) { return leader(h, s); }, part, sink);
    }
  }
};

/// Each slice is combined on every host, by the circulant all_reduce between hosts, and spread on every host.
///
/// Order: cyclic in the hosts, so the functor must commute
/// Cost:  2 ceil(log2 hosts) + 2 rounds; of the vector 2 (hosts - 1) / hosts cross from and to each host
struct multi_leader_all_reduce {
  multi_leader at{};

  [[nodiscard]] constexpr circulant_all_reduce leaders() const noexcept { return {at.on->hosts(), at.host()}; }
  [[nodiscard]] constexpr int rounds() const noexcept { return leaders().rounds() + 2; }
  [[nodiscard]] constexpr int blocks() const noexcept { return at.blocks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    if (k == 0) return at.fold_near(sink);
    if (k == rounds() - 1) return at.spread_near(sink);
    at.far(leaders(), k - 1, sink);
  }
};

/// Each slice is combined on every host, by circulant reduce_scatter between hosts, and gathered on the root's host.
///
/// Order: cyclic in the hosts, so the functor must commute
/// Cost:  2 ceil(log2 hosts) + 2 rounds
struct multi_leader_reduce {
  multi_leader at{};
  int root = 0;

  [[nodiscard]] constexpr reduce_scatter_gather_reduce leaders() const noexcept {
    return {at.on->hosts(), at.host(), at.on->host_of(root)};
  }
  [[nodiscard]] constexpr int rounds() const noexcept { return leaders().rounds() + 2; }
  [[nodiscard]] constexpr int blocks() const noexcept { return at.blocks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    if (k == 0) return at.fold_near(sink);
    if (k < rounds() - 1) return at.far(leaders(), k - 1, sink);
    at.deal(sink, root, false);
  }
};

/// The root deals the slices to the leaders on its host; each crosses to other hosts once, whole to one and cut into
/// blocks to more of them, and is spread there.
///
/// Cost: ceil(log2 hosts) + 2 rounds, or ceil(log2 hosts) more for three hosts and above
struct multi_leader_broadcast {
  multi_leader at{};
  int root = 0;

  [[nodiscard]] constexpr bool in_blocks() const noexcept { return at.on->hosts() > 2; }
  [[nodiscard]] constexpr int far_rounds() const noexcept { return ceil_log2(at.on->hosts()) * (in_blocks() ? 2 : 1); }
  [[nodiscard]] constexpr int rounds() const noexcept { return far_rounds() + 2; }
  [[nodiscard]] constexpr int blocks() const noexcept { return at.blocks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const int from = at.on->host_of(root);
    if (k == rounds() - 1) return at.spread_near(sink, root);
    if (k > 0 && in_blocks()) return at.far(scatter_all_gather_broadcast(at.on->hosts(), at.host(), from), k - 1, sink);
    if (k > 0) return at.far(binomial_broadcast{at.on->hosts(), at.host(), from}, k - 1, sink);
    at.deal(sink, root, true);
  }
};

static_assert(schedule<multi_leader_all_reduce> && schedule<multi_leader_reduce> && schedule<multi_leader_broadcast>);

}  // namespace cohort::collective
