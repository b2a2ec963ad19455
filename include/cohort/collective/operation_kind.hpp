// SPDX-License-Identifier: BSL-1.0
// The operations of a communicator as values: the key of the algorithm table in select.hpp, the first word of every
// message's fingerprint in transport/signature.hpp, and the names that errors and overrides use.
#pragma once

#include <optional>
#include <string_view>

namespace cohort {

/// The numbers travel in messages: they stay what they are.
enum class operation_kind : unsigned char {
  barrier = 1,
  broadcast,
  scatter,
  scatter_v,
  gather,
  gather_v,
  reduce,
  all_reduce,
  all_gather,
  all_gather_v,
  reduce_scatter,
  reduce_scatter_v,
  all_to_all,
  all_to_all_v,
  scan,
  exclusive_scan,
  send,
  receive,
  exchange,
  subgroup,
  split,
  duplicate,
  probe,
  broadcast_objects,
  scatter_objects,
  gather_objects,
  all_gather_objects,
};

inline constexpr operation_kind last_operation_kind = operation_kind::all_gather_objects;

[[nodiscard]] constexpr bool reduces(operation_kind kind) noexcept {
  using enum operation_kind;
  return kind == reduce || kind == all_reduce || kind == reduce_scatter || kind == reduce_scatter_v || kind == scan ||
         kind == exclusive_scan;
}

/// As in the name of the function: "all_reduce"; "unknown operation" for a number that is none of the above.
[[nodiscard]] constexpr std::string_view name(operation_kind kind) noexcept {
  switch (kind) {
    case operation_kind::barrier: return "barrier";
    case operation_kind::broadcast: return "broadcast";
    case operation_kind::scatter: return "scatter";
    case operation_kind::scatter_v: return "scatter_v";
    case operation_kind::gather: return "gather";
    case operation_kind::gather_v: return "gather_v";
    case operation_kind::reduce: return "reduce";
    case operation_kind::all_reduce: return "all_reduce";
    case operation_kind::all_gather: return "all_gather";
    case operation_kind::all_gather_v: return "all_gather_v";
    case operation_kind::reduce_scatter: return "reduce_scatter";
    case operation_kind::reduce_scatter_v: return "reduce_scatter_v";
    case operation_kind::all_to_all: return "all_to_all";
    case operation_kind::all_to_all_v: return "all_to_all_v";
    case operation_kind::scan: return "scan";
    case operation_kind::exclusive_scan: return "exclusive_scan";
    case operation_kind::send: return "send";
    case operation_kind::receive: return "receive";
    case operation_kind::exchange: return "exchange";
    case operation_kind::subgroup: return "subgroup";
    case operation_kind::split: return "split";
    case operation_kind::duplicate: return "duplicate";
    case operation_kind::probe: return "probe";
    case operation_kind::broadcast_objects: return "broadcast_objects";
    case operation_kind::scatter_objects: return "scatter_objects";
    case operation_kind::gather_objects: return "gather_objects";
    case operation_kind::all_gather_objects: return "all_gather_objects";
  }
  return "unknown operation";
}

/// The operation of that name, if there is one.
[[nodiscard]] constexpr std::optional<operation_kind> operation_kind_of(std::string_view text) noexcept {
  for (unsigned k = 1; k <= static_cast<unsigned>(last_operation_kind); ++k) {
    if (name(static_cast<operation_kind>(k)) == text) return static_cast<operation_kind>(k);
  }
  return std::nullopt;
}

}  // namespace cohort
