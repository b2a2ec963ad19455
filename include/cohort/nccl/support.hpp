// SPDX-License-Identifier: BSL-1.0
// What communicator<nccl> makes of a call: NCCL's own collective, its messages or an exchange and a fold, or nothing. What
// `supports<nccl, function, T, Op>` answers.
#pragma once

#include <cohort/backend/function.hpp>
#include <cohort/nccl/reduction_map.hpp>
#include <cohort/reduction.hpp>

namespace cohort::detail {

template <function F, class T, class Op>
[[nodiscard]] consteval support nccl_support() noexcept {
  using enum function;
  if constexpr (F == probe) {
    return support::none;
  } else if constexpr (reduces(F)) {
    if constexpr (!reduction<Op, T>) return support::none;
    else if constexpr (F == exclusive_scan && (has_prepare<Op, T> || has_finish<Op, T>)) return support::none;
    else if constexpr (F == scan || F == exclusive_scan || F == reduce_scatter_v) return support::generic;
    else return nccl_reduces<Op, T> ? support::native : support::generic;
  } else if constexpr (F == send || F == recv || F == exchange || F == batch || F == scatter_v || F == gather_v ||
                       F == all_gather_v || F == all_to_all_v) {
    return support::generic;
  } else {
    return support::native;
  }
}

}  // namespace cohort::detail
