// SPDX-License-Identifier: BSL-1.0
// What the collectives ask of the window of ranks that share memory: whether there is one, and what may be carried out in it
// where it is called. The bodies are in shared/; code that knows element types needs no more than this.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/layout.hpp>
#include <cohort/collective/shared/reduced.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/operation.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <concepts>
#include <cstddef>

namespace cohort::collective {

/// A transport whose ranks may share memory.
template <class Transport>
concept sharing_transport = std::derived_from<Transport, transport::sharing_engine>;

/// The algorithm by messages for a call that was to be carried out in a window which could not be opened.
[[nodiscard]] algorithm without_window(const call& c, std::size_t bytes, bool commutative);

/// Combines the vectors of all ranks into `dest`, which may be `source`; only on `root` unless that is -1.
///
/// Shapes: source, dest: layouts of one block of `bytes` bytes; dest is not used on ranks that get no result
/// Order:  that of the ranks, always
/// Cost:   a vector of up to 96 bytes costs two cache lines from each rank, one of 32 bytes a single one
template <class Channel>
task<reduced> reduce_in_window(Channel ch, layout source, layout dest, std::size_t bytes,
                               const cohort::detail::reducer& op, int root);

/// The same result as reduce_in_window, of vectors that every rank combines whole, if it can be had without a frame.
///
/// Shapes: out: as in; not used on ranks other than `root`, unless that is -1
/// Result: false: a frame must carry the operation out, from the beginning or from where this has left it
/// Errors: none: what the functor throws, it throws again in the frame
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

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/at_once.hpp>
#endif
