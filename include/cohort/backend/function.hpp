// SPDX-License-Identifier: BSL-1.0
// The functions of a communicator and the ways in which a backend may have one: the words of `supports` (backend.hpp).
#pragma once

namespace cohort {

/// The functions of a communicator, as `supports` names them.
enum class function : unsigned char {
  send,
  recv,
  exchange,
  barrier,
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
  probe,
  batch,
  all_reduce_coalesced,
  all_gather_coalesced,
  reduce_scatter_coalesced,
};

[[nodiscard]] constexpr bool reduces(function f) noexcept {
  return f == function::reduce || f == function::all_reduce || f == function::reduce_scatter ||
         f == function::reduce_scatter_v || f == function::scan || f == function::exclusive_scan ||
         f == function::all_reduce_coalesced || f == function::reduce_scatter_coalesced;
}

/// How a backend carries a call out.
enum class support : unsigned char {
  none,     ///< it does not compile; the error says why
  generic,  ///< by a schedule over send and receive; on a GPU by messages, or by an exchange and a fold
  native,   ///< by the backend's own collective
};

}  // namespace cohort
