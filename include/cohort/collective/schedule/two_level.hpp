// SPDX-License-Identifier: BSL-1.0
// Schedules of all_gather and reduce_scatter for several hosts with several ranks each: a block crosses from one host
// to another once. The ranks at one place of their hosts are a column; they do not look at the sizes of blocks.
#pragma once

#include <cohort/collective/hosts.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/among.hpp>
#include <cohort/collective/schedule/broadcast.hpp>

namespace cohort::collective {

/// A host with fewer ranks than there are columns has some of them deal with several.
struct columns {
  const host_table* on = nullptr;
  int rank = 0;

  [[nodiscard]] constexpr int host() const noexcept { return on->host_of(rank); }
  [[nodiscard]] constexpr int place() const noexcept { return on->place_of(rank); }
  /// Who deals with a column on a host.
  [[nodiscard]] constexpr int dealer(int h, int column) const noexcept { return on->rank_at(h, column % on->count(h)); }
  /// Whether rank `who` deals, on its host, with the column that rank `of` is in.
  [[nodiscard]] constexpr bool deals(int who, int of) const noexcept {
    return dealer(on->host_of(who), on->place_of(of)) == who;
  }
  /// Calls f(first, count) for every run of consecutive ranks for which `wanted(rank)` holds.
  template <class Wanted, class F>
  constexpr void each_run(Wanted wanted, F f) const {
    for (int r = 0; r < on->ranks(); ++r) {
      if (!wanted(r)) continue;
      const int first = r;
      while (r + 1 < on->ranks() && wanted(r + 1)) ++r;
      f(first, r + 1 - first);
    }
  }
  /// The others of this rank's host.
  template <class F>
  constexpr void each_near(F f) const {
    for (int p = 0; p < on->count(host()); ++p) {
      if (p != place()) f(on->rank_at(host(), p));
    }
  }
};

/// Every block to whoever deals with its column on each other host, then from there to the other ranks of the host.
///
/// Cost: two rounds; (hosts - 1) messages of one block, and at most as many as there are hosts for each rank of the host
struct two_level_all_gather {
  columns at{};

  [[nodiscard]] constexpr int rounds() const noexcept { return 2; }
  [[nodiscard]] constexpr int blocks() const noexcept { return at.on->ranks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const host_table& on = *at.on;
    if (k == 0) {
      for (int i = 1; i < on.hosts(); ++i) {
        const int h = (at.host() + i) % on.hosts();
        sink.send(at.dealer(h, at.place()), region{buffer::out, at.rank, 1});
        for (int p = 0; p < on.count(h); ++p) {
          const int from = on.rank_at(h, p);
          if (at.deals(at.rank, from)) sink.receive(from, region{buffer::out, from, 1});
        }
      }
      return;
    }
    at.each_near([&](int other) {
      at.each_run([&](int r) { return at.deals(at.rank, r); },
                  [&](int first, int count) {
                    sink.send(other, region{buffer::out, first, count});
                  });
      at.each_run([&](int r) { return at.deals(other, r); },
                  [&](int first, int count) {
                    sink.receive(other, region{buffer::out, first, count});
                  });
    });
  }
};

/// For small blocks: to the leader of the host, between the leaders, and from them the whole.
///
/// Cost: 2 + ceil(log2 ranks of the largest host) rounds
struct single_leader_all_gather {
  columns at{};

  [[nodiscard]] constexpr int rounds() const noexcept { return 2 + ceil_log2(at.on->most()); }
  [[nodiscard]] constexpr int blocks() const noexcept { return at.on->ranks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const host_table& on = *at.on;
    const int leader = on.rank_at(at.host(), 0);
    if (k == 0) {
      if (at.rank != leader) return sink.send(leader, region{buffer::out, at.rank, 1});
      at.each_near([&](int other) { sink.receive(other, region{buffer::out, other, 1}); });
    } else if (k == 1) {
      for (int i = 1; i < on.hosts() && at.rank == leader; ++i) {
        const int next = (at.host() + i) % on.hosts();
        const int before = (at.host() + on.hosts() - i) % on.hosts();
        at.each_run([&](int r) { return on.host_of(r) == at.host(); },
                    [&](int first, int count) {
                      sink.send(on.rank_at(next, 0), region{buffer::out, first, count});
                    });
        at.each_run([&](int r) { return on.host_of(r) == before; },
                    [&](int first, int count) {
                      sink.receive(on.rank_at(before, 0), region{buffer::out, first, count});
                    });
      }
    } else {
      const auto near = [&](int p) { return on.rank_at(at.host(), p); };
      const binomial_broadcast steps{on.count(at.host()), at.place(), 0};
      round_among(steps, k - 2, near, {0, 1, on.ranks()}, sink);
    }
  }
};

/// Every block to whoever deals with its column on its sender's host, who combines it, then to the rank whose it is.
///
/// Order: none, so the functor must commute
/// Cost:  two rounds; (hosts - 1) messages of one block, and at most as many as there are hosts for each rank of the host
struct two_level_reduce_scatter {
  columns at{};

  [[nodiscard]] constexpr int rounds() const noexcept { return 2; }
  [[nodiscard]] constexpr int blocks() const noexcept { return at.on->ranks(); }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return at.on->ranks(); }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const host_table& on = *at.on;
    const auto dealt = [&](int r) { return at.deals(at.rank, r); };
    if (k == 0) {
      at.each_run(dealt, [&](int first, int count) {
        sink.copy(region{buffer::in, first, count}, region{buffer::work, first, count});
      });
      at.each_near([&](int other) {
        at.each_run([&](int r) { return at.deals(other, r); },
                    [&](int first, int count) {
                      sink.send(other, region{buffer::in, first, count});
                    });
        at.each_run(dealt, [&](int first, int count) {
          sink.receive_reduce(other, region{buffer::work, first, count}, side::right);
        });
      });
      return;
    }
    sink.copy(region{buffer::work, at.rank, 1}, region{buffer::out, 0, 1});
    for (int i = 1; i < on.hosts(); ++i) {
      const int h = (at.host() + i) % on.hosts();
      for (int p = 0; p < on.count(h); ++p) {
        const int whose = on.rank_at(h, p);
        if (dealt(whose)) sink.send(whose, region{buffer::work, whose, 1});
      }
      sink.receive_reduce(at.dealer(h, at.place()), region{buffer::out, 0, 1}, side::right);
    }
  }
};

static_assert(schedule<two_level_all_gather> && schedule<single_leader_all_gather> &&
              schedule<two_level_reduce_scatter>);

}  // namespace cohort::collective
