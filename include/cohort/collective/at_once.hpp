// SPDX-License-Identifier: BSL-1.0
// Collectives that are carried out where they are called, without a frame, if the other ranks are there: in the window of ranks
// that share memory (shared/at_once.hpp), by messages between two ranks (pair_at_once.hpp). Those that only move blocks are in
// move_at_once.hpp.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/operation.hpp>

#include <cstddef>

namespace cohort::collective {

/// The vectors of all ranks combined in their order.
///
/// Shapes: out: as in; not used on ranks other than `root`, unless that is -1
/// Result: false: a frame must carry the operation out, from the beginning or from where this has left it
/// Errors: none: what the functor throws, it throws in the frame
[[nodiscard]] bool reduce_at_once(cohort::detail::ticket& t, const std::byte* in, std::byte* out, std::size_t count,
                                  const cohort::detail::reducer& op, int root);

/// The same of a reduce-scatter. `in` has a block for each rank, none longer than `longest` bytes; `out` is one block.
[[nodiscard]] bool reduce_scatter_at_once(cohort::detail::ticket& t, const layout& in, const layout& out,
                                          std::size_t longest, const cohort::detail::reducer& op);

/// The same of an inclusive scan.
[[nodiscard]] bool scan_at_once(cohort::detail::ticket& t, const std::byte* in, std::byte* out, std::size_t count,
                                const cohort::detail::reducer& op);

/// The same of a broadcast from the root that the ticket names.
[[nodiscard]] bool broadcast_at_once(cohort::detail::ticket& t, std::byte* data, std::size_t bytes);

/// The same of a barrier.
[[nodiscard]] bool barrier_at_once(cohort::detail::ticket& t);

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/at_once.hpp>
#endif
