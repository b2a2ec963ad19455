// SPDX-License-Identifier: BSL-1.0
// The algorithms of the collectives as values, and which operation has which: one line for every schedule in
// schedule/. The choice between them is made in select.hpp.
#pragma once

#include <cohort/collective/operation_kind.hpp>

#include <optional>
#include <string_view>

namespace cohort::collective {

/// The numbers travel in messages: they stay what they are. 0 is no algorithm, for operations that have no choice.
enum class algorithm : unsigned char {
  dissemination = 1,
  linear,
  binomial,
  ring,
  chain,
  circulant,
  pairwise,
  bruck,
  recursive_doubling,
  halving_doubling,
  halving,
  halving_gather,
  scatter_all_gather,
  reduce_scatter_gather,
  shared_memory,
  native,        ///< not a schedule: the collective of the library that the backend stands on
  hierarchical,  ///< on each host, then between hosts
  central,       ///< all to one rank, which answers all
};

inline constexpr algorithm last_algorithm = algorithm::central;

[[nodiscard]] constexpr std::string_view to_string(algorithm a) noexcept {
  switch (a) {
    case algorithm::dissemination: return "dissemination";
    case algorithm::linear: return "linear";
    case algorithm::binomial: return "binomial";
    case algorithm::ring: return "ring";
    case algorithm::chain: return "chain";
    case algorithm::circulant: return "circulant";
    case algorithm::pairwise: return "pairwise";
    case algorithm::bruck: return "bruck";
    case algorithm::recursive_doubling: return "recursive_doubling";
    case algorithm::halving_doubling: return "halving_doubling";
    case algorithm::halving: return "halving";
    case algorithm::halving_gather: return "halving_gather";
    case algorithm::scatter_all_gather: return "scatter_all_gather";
    case algorithm::reduce_scatter_gather: return "reduce_scatter_gather";
    case algorithm::shared_memory: return "shared_memory";
    case algorithm::native: return "native";
    case algorithm::hierarchical: return "hierarchical";
    case algorithm::central: return "central";
  }
  return "no algorithm";
}

/// The algorithm of that name, if there is one.
[[nodiscard]] constexpr std::optional<algorithm> algorithm_of(std::string_view text) noexcept {
  for (unsigned a = 1; a <= static_cast<unsigned>(last_algorithm); ++a) {
    if (to_string(static_cast<algorithm>(a)) == text) return static_cast<algorithm>(a);
  }
  return std::nullopt;
}

/// One schedule: what it does, how, and whether it combines operands in an order that is not that of the ranks.
struct implementation {
  operation_kind operation{};
  collective::algorithm algorithm{};
  bool needs_commutative = false;
};

inline constexpr implementation implementations[] = {
    {operation_kind::barrier, algorithm::dissemination},
    {operation_kind::barrier, algorithm::central},
    {operation_kind::barrier, algorithm::hierarchical},
    {operation_kind::barrier, algorithm::shared_memory},
    {operation_kind::broadcast, algorithm::binomial},
    {operation_kind::broadcast, algorithm::circulant},
    {operation_kind::broadcast, algorithm::scatter_all_gather},
    {operation_kind::broadcast, algorithm::chain},
    {operation_kind::broadcast, algorithm::hierarchical},
    {operation_kind::broadcast, algorithm::shared_memory},
    {operation_kind::scatter, algorithm::binomial},
    {operation_kind::scatter, algorithm::linear},
    {operation_kind::scatter, algorithm::shared_memory},
    {operation_kind::scatter_v, algorithm::linear},
    {operation_kind::scatter_v, algorithm::shared_memory},
    {operation_kind::gather, algorithm::binomial},
    {operation_kind::gather, algorithm::linear},
    {operation_kind::gather, algorithm::shared_memory},
    {operation_kind::gather_v, algorithm::linear},
    {operation_kind::gather_v, algorithm::shared_memory},
    {operation_kind::reduce, algorithm::binomial},
    {operation_kind::reduce, algorithm::halving_gather},
    {operation_kind::reduce, algorithm::circulant, true},
    {operation_kind::reduce, algorithm::reduce_scatter_gather, true},
    {operation_kind::reduce, algorithm::hierarchical, true},
    {operation_kind::reduce, algorithm::shared_memory},
    {operation_kind::all_reduce, algorithm::recursive_doubling},
    {operation_kind::all_reduce, algorithm::halving_doubling},
    {operation_kind::all_reduce, algorithm::circulant, true},
    {operation_kind::all_reduce, algorithm::ring, true},
    {operation_kind::all_reduce, algorithm::central, true},
    {operation_kind::all_reduce, algorithm::hierarchical, true},
    {operation_kind::all_reduce, algorithm::shared_memory},
    {operation_kind::all_gather, algorithm::circulant},
    {operation_kind::all_gather, algorithm::ring},
    {operation_kind::all_gather, algorithm::linear},
    {operation_kind::all_gather, algorithm::central},
    {operation_kind::all_gather, algorithm::hierarchical},
    {operation_kind::all_gather, algorithm::shared_memory},
    {operation_kind::all_gather_v, algorithm::circulant},
    {operation_kind::all_gather_v, algorithm::ring},
    {operation_kind::all_gather_v, algorithm::linear},
    {operation_kind::all_gather_v, algorithm::central},
    {operation_kind::all_gather_v, algorithm::hierarchical},
    {operation_kind::all_gather_v, algorithm::shared_memory},
    {operation_kind::reduce_scatter, algorithm::halving},
    {operation_kind::reduce_scatter, algorithm::pairwise},
    {operation_kind::reduce_scatter, algorithm::circulant, true},
    {operation_kind::reduce_scatter, algorithm::ring, true},
    {operation_kind::reduce_scatter, algorithm::central, true},
    {operation_kind::reduce_scatter, algorithm::hierarchical, true},
    {operation_kind::reduce_scatter, algorithm::shared_memory},
    {operation_kind::reduce_scatter_v, algorithm::halving},
    {operation_kind::reduce_scatter_v, algorithm::pairwise},
    {operation_kind::reduce_scatter_v, algorithm::circulant, true},
    {operation_kind::reduce_scatter_v, algorithm::ring, true},
    {operation_kind::reduce_scatter_v, algorithm::central, true},
    {operation_kind::reduce_scatter_v, algorithm::hierarchical, true},
    {operation_kind::reduce_scatter_v, algorithm::shared_memory},
    {operation_kind::all_to_all, algorithm::bruck},
    {operation_kind::all_to_all, algorithm::pairwise},
    {operation_kind::all_to_all, algorithm::central},
    {operation_kind::all_to_all, algorithm::shared_memory},
    {operation_kind::all_to_all_v, algorithm::pairwise},
    {operation_kind::all_to_all_v, algorithm::shared_memory},
    {operation_kind::scan, algorithm::recursive_doubling},
    {operation_kind::scan, algorithm::chain},
    {operation_kind::scan, algorithm::shared_memory},
    {operation_kind::exclusive_scan, algorithm::recursive_doubling},
    {operation_kind::exclusive_scan, algorithm::chain},
    {operation_kind::exclusive_scan, algorithm::shared_memory},
};

/// Whether ranks that share memory have a way of their own to carry the operation out. Every such operation is a
/// collective; they come first in operation_kind.
[[nodiscard]] constexpr bool has_shared_memory(operation_kind kind) noexcept {
  return kind >= operation_kind::barrier && kind <= operation_kind::exclusive_scan;
}
static_assert([] {
  for (const implementation& i : implementations) {
    if (i.algorithm == algorithm::shared_memory && !has_shared_memory(i.operation)) return false;
  }
  return true;
}());
/// Whether there is a way for several hosts with several ranks each, and one that any functor may take.
[[nodiscard]] constexpr bool has_hierarchy(operation_kind kind, bool commutative) noexcept {
  for (const implementation& i : implementations) {
    if (i.operation == kind && i.algorithm == algorithm::hierarchical) return commutative || !i.needs_commutative;
  }
  return false;
}
/// An algorithm that not every communicator has: it needs what its ranks share.
[[nodiscard]] constexpr bool needs_places(algorithm a) noexcept {
  return a == algorithm::shared_memory || a == algorithm::hierarchical;
}

/// What a library such as MPI has of its own; it keeps the order of the ranks where a functor does not commute.
inline constexpr implementation native_implementations[] = {
    {operation_kind::barrier, algorithm::native},        {operation_kind::broadcast, algorithm::native},
    {operation_kind::scatter, algorithm::native},        {operation_kind::scatter_v, algorithm::native},
    {operation_kind::gather, algorithm::native},         {operation_kind::gather_v, algorithm::native},
    {operation_kind::reduce, algorithm::native},         {operation_kind::all_reduce, algorithm::native},
    {operation_kind::all_gather, algorithm::native},     {operation_kind::all_gather_v, algorithm::native},
    {operation_kind::reduce_scatter, algorithm::native}, {operation_kind::reduce_scatter_v, algorithm::native},
    {operation_kind::all_to_all, algorithm::native},     {operation_kind::all_to_all_v, algorithm::native},
    {operation_kind::scan, algorithm::native},           {operation_kind::exclusive_scan, algorithm::native},
};

/// Where a library's own collective cannot be used after all, the schedule that a collective takes if none is named.
[[nodiscard]] constexpr algorithm by_messages(algorithm a) noexcept { return a == algorithm::native ? algorithm{} : a; }

/// Whether between two ranks the schedule is one message of the whole, in its first round, from each rank that gives
/// something: then the other cannot tell whether a schedule has sent it.
[[nodiscard]] constexpr bool is_one_message(operation_kind kind, algorithm how) noexcept {
  switch (kind) {
    case operation_kind::barrier: return how == algorithm::dissemination;
    case operation_kind::broadcast: return how == algorithm::binomial;
    case operation_kind::reduce: return how == algorithm::binomial;
    case operation_kind::gather:
    case operation_kind::scatter: return how == algorithm::binomial || how == algorithm::linear;
    case operation_kind::all_reduce:
    case operation_kind::scan: return how == algorithm::recursive_doubling;
    case operation_kind::all_gather:
      return how == algorithm::circulant || how == algorithm::ring || how == algorithm::linear;
    case operation_kind::all_to_all: return how == algorithm::bruck || how == algorithm::pairwise;
    case operation_kind::reduce_scatter:
      return how == algorithm::halving || how == algorithm::pairwise || how == algorithm::circulant ||
             how == algorithm::ring;
    default: return false;
  }
}

/// The schedule for that operation by that algorithm, or nullptr.
[[nodiscard]] constexpr const implementation* find_implementation(operation_kind kind, algorithm a) noexcept {
  for (const implementation& i : implementations) {
    if (i.operation == kind && i.algorithm == a) return &i;
  }
  for (const implementation& i : native_implementations) {
    if (i.operation == kind && i.algorithm == a) return &i;
  }
  return nullptr;
}

}  // namespace cohort::collective
