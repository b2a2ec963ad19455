// SPDX-License-Identifier: BSL-1.0
// What an algorithm takes by the model of link_costs.hpp: closed forms of the schedules in schedule/, checked against
// the schedules themselves by a test. Used by fit.hpp, which makes a selection table of them.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/link_costs.hpp>
#include <cohort/collective/operation_kind.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/collective/select.hpp>

#include <bit>
#include <cstddef>

namespace cohort::collective {

namespace detail {

/// The terms of the closed forms, for a number of ranks.
struct cost_terms {
  link_costs cost;
  int ranks;

  [[nodiscard]] constexpr double rounds() const noexcept { return ceil_log2(ranks); }
  [[nodiscard]] constexpr double core_rounds() const noexcept { return floor_log2(ranks); }
  [[nodiscard]] constexpr bool even() const noexcept { return (1LL << floor_log2(ranks)) == ranks; }
  [[nodiscard]] constexpr double others() const noexcept { return ranks - 1; }
  /// `(ranks - 1) / ranks`: what is not a rank's own of a vector that is cut into a block for each.
  [[nodiscard]] constexpr double share() const noexcept { return others() / ranks; }

  /// One message.
  [[nodiscard]] constexpr double message(double bytes) const noexcept { return cost.latency + bytes * cost.byte; }
  /// One that is combined with what is there.
  [[nodiscard]] constexpr double combined(double bytes) const noexcept { return message(bytes) + bytes * cost.combine; }
  /// To or from all others at once, `bytes` each.
  [[nodiscard]] constexpr double burst(double bytes) const noexcept {
    return cost.latency + (others() - 1) * cost.overhead + others() * bytes * cost.byte;
  }
  /// The same, no more than `window` at a time.
  [[nodiscard]] constexpr double windows(int window, double bytes) const noexcept {
    const int turns = (ranks - 2) / window + 1;
    return turns * cost.latency + (others() - turns) * cost.overhead + others() * bytes * cost.byte;
  }

  /// How many bits the numbers of all ranks have together: the blocks that a rank passes on if each bit is a round.
  [[nodiscard]] constexpr double bits() const noexcept {
    double sum = 0;
    for (int r = 1; r < ranks; ++r) sum += std::popcount(static_cast<unsigned>(r));
    return sum;
  }

  /// Ranks over a power of two hand their vectors in first, and get the result at the end.
  [[nodiscard]] constexpr double join(double bytes) const noexcept { return even() ? 0 : combined(bytes); }
  [[nodiscard]] constexpr double part(double bytes) const noexcept { return even() ? 0 : message(bytes); }
  [[nodiscard]] constexpr double core_share() const noexcept {
    const double core = static_cast<double>(1LL << floor_log2(ranks));
    return (core - 1) / core;
  }
  [[nodiscard]] constexpr double halving(double bytes) const noexcept {
    return join(bytes) + core_rounds() * cost.latency + core_share() * bytes * (cost.byte + cost.combine);
  }
  [[nodiscard]] constexpr double circulant_fold(double bytes) const noexcept {
    return rounds() * cost.latency + share() * bytes * (cost.byte + cost.combine);
  }
  [[nodiscard]] constexpr double spread(double latencies, double bytes) const noexcept {
    return latencies * cost.latency + share() * bytes * cost.byte;
  }
  [[nodiscard]] constexpr double pipeline(algorithm a, double fill, std::size_t bytes, double per_byte) const noexcept {
    const int segments = pipeline_segments(a, bytes, ranks);
    return (fill + segments) * (cost.latency + static_cast<double>(bytes) / segments * per_byte);
  }
};

}  // namespace detail

/// The time from the call on every rank to the end on the last.
///
/// Needs:  `a` is an algorithm of `kind` that works by messages; `bytes` as for selection_table::choose
/// Result: seconds; 0 for one rank
/// Source: the closed forms of Thakur, Rabenseifner and Gropp (2005), and of Träff for the circulant ones
[[nodiscard]] constexpr double predicted_seconds(operation_kind kind, algorithm a, std::size_t bytes, int ranks,
                                                 const link_costs& costs) noexcept {
  if (ranks < 2) return 0;
  const detail::cost_terms t{costs, ranks};
  const auto n = static_cast<double>(bytes);
  const double both = costs.byte + costs.combine;
  switch (kind) {
    case operation_kind::barrier: return a == algorithm::central ? 2 * t.burst(0) : t.rounds() * costs.latency;
    case operation_kind::broadcast:
      if (a == algorithm::circulant) return t.pipeline(a, t.rounds() - 1, bytes, costs.byte);
      if (a == algorithm::chain) return t.pipeline(a, t.others() - 1, bytes, costs.byte);
      if (a == algorithm::scatter_all_gather) return t.spread(t.rounds(), n) + t.spread(t.rounds(), n);
      return t.rounds() * t.message(n);
    case operation_kind::scatter:
    case operation_kind::scatter_v:
    case operation_kind::gather:
    case operation_kind::gather_v:
      // Inner ranks of the tree keep what they pass on: half of everything is copied once more.
      if (a == algorithm::binomial) {
        return t.rounds() * costs.latency + t.others() * n * costs.byte + ranks / 2.0 * n * costs.combine;
      }
      return t.burst(n);
    case operation_kind::reduce:
      if (a == algorithm::circulant) return t.pipeline(a, t.rounds() - 1, bytes, both);
      if (a == algorithm::halving_gather) return t.halving(n) + t.spread(t.core_rounds(), n);
      if (a == algorithm::reduce_scatter_gather) return t.circulant_fold(n) + t.spread(t.rounds(), n);
      return t.rounds() * t.combined(n);
    case operation_kind::all_reduce:
      if (a == algorithm::circulant) return t.circulant_fold(n) + t.spread(t.rounds(), n);
      if (a == algorithm::ring) return t.others() * costs.latency + t.share() * n * both + t.spread(t.others(), n);
      if (a == algorithm::central) return 2 * t.burst(n) + t.others() * n * costs.combine;
      if (a == algorithm::halving_doubling) {
        return t.halving(n) + t.core_rounds() * costs.latency + t.core_share() * n * costs.byte + t.part(n);
      }
      return t.join(n) + t.core_rounds() * t.combined(n) + t.part(n);
    case operation_kind::all_gather:
    case operation_kind::all_gather_v:
      if (a == algorithm::linear) return t.burst(n / ranks);
      if (a == algorithm::central) return t.burst(n / ranks) + t.burst(n);
      return t.spread(a == algorithm::ring ? t.others() : t.rounds(), n);
    case operation_kind::reduce_scatter:
    case operation_kind::reduce_scatter_v:
      if (a == algorithm::halving) {
        return t.halving(n) + (ranks > 2 ? t.message(n / ranks) : 0);  // blocks come out in another order
      }
      if (a == algorithm::central) return t.burst(n) + t.others() * n * costs.combine + t.burst(n / ranks);
      if (a == algorithm::pairwise || a == algorithm::ring) return t.others() * costs.latency + t.share() * n * both;
      return t.circulant_fold(n);
    case operation_kind::all_to_all:
    case operation_kind::all_to_all_v:
      if (a == algorithm::bruck) {
        return t.rounds() * costs.latency + t.bits() * n * both;  // each block is copied, too
      }
      if (a == algorithm::central) return 2 * t.burst(ranks * n);
      return t.windows(exchange_window(bytes), n);
    default:  // the scans
      if (a == algorithm::chain) return t.pipeline(a, t.others() - 1, bytes, both);
      return t.rounds() * t.combined(n);
  }
}

}  // namespace cohort::collective
