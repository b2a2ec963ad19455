// SPDX-License-Identifier: BSL-1.0
// A schedule carried out by some of the ranks on some of the blocks: what those of hierarchical.hpp are put together
// from.
#pragma once

#include <cohort/collective/schedule.hpp>

#include <algorithm>

namespace cohort::collective {

/// A part of the vector: as many blocks as the schedule inside counts, each of them `width` blocks of the whole.
struct slice {
  int first = 0;
  int blocks = 1;
  int width = 1;
};

/// Passes on what a schedule says, with its peers and blocks as the whole knows them. A run that wraps around at the
/// end of the slice is two runs of the whole, and two messages, for both ends alike.
///
/// Needs: the schedule works in place on `out`
template <schedule_sink Sink, class RankOf>
class among_sink {
 public:
  constexpr among_sink(Sink& outside, const RankOf& rank_of, slice part) noexcept
      : outside_(&outside), rank_of_(&rank_of), part_(part) {}

  constexpr void send(int peer, region r) const {
    each_run(r, [&](region run) { outside_->send((*rank_of_)(peer), run); });
  }
  constexpr void receive(int peer, region r) const {
    each_run(r, [&](region run) { outside_->receive((*rank_of_)(peer), run); });
  }
  constexpr void receive_reduce(int peer, region r, side s) const {
    each_run(r, [&](region run) { outside_->receive_reduce((*rank_of_)(peer), run, s); });
  }
  constexpr void copy(region from, region to) const {
    for (int i = 0; i < from.count; ++i) outside_->copy(block(from, i), block(to, i));
  }
  constexpr void reduce(region from, region into, side s) const {
    for (int i = 0; i < from.count; ++i) outside_->reduce(block(from, i), block(into, i), s);
  }

 private:
  template <class F>
  constexpr void each_run(region r, F f) const {
    const int before_end = std::min(r.count, part_.blocks - r.first);
    f(outer(r.where, r.first, before_end));
    if (before_end < r.count) f(outer(r.where, 0, r.count - before_end));
  }
  [[nodiscard]] constexpr region block(region r, int i) const noexcept {
    return outer(r.where, (r.first + i) % part_.blocks, 1);
  }
  [[nodiscard]] constexpr region outer(buffer where, int first, int count) const noexcept {
    return {where, part_.first + first * part_.width, count * part_.width};
  }

  Sink* outside_;
  const RankOf* rank_of_;
  slice part_;
};

/// Round `k` of `steps`, whose rank i is rank `rank_of(i)` of the whole and whose blocks are those of `part`; nothing
/// before its first round and after its last.
template <schedule Inside, class RankOf, schedule_sink Sink>
constexpr void round_among(const Inside& steps, int k, const RankOf& rank_of, slice part, Sink& sink) {
  if (k < 0 || k >= steps.rounds()) return;
  among_sink<Sink, RankOf> inside(sink, rank_of, part);
  steps.round(k, inside);
}

}  // namespace cohort::collective
