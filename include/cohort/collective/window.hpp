// SPDX-License-Identifier: BSL-1.0
// What the collectives ask of the window of ranks that share memory. The bodies are in shared/; code that knows element types
// needs no more than this.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/layout.hpp>
#include <cohort/collective/shared/reduced.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <cstddef>

namespace cohort::collective {

/// The algorithm by messages for a call that was to be carried out in a window which could not be opened. No collective of
/// the backend's own: those begin in the order of the calls, and this one has waited since its call.
[[nodiscard]] algorithm without_window(const call& c, std::size_t bytes, bool commutative);

/// Combines the vectors of all ranks into `dest`, which may be `source`; only on `root` unless that is -1.
///
/// Shapes: source, dest: layouts of one block of `bytes` bytes; dest is not used on ranks that get no result
/// Order:  that of the ranks, always
/// Cost:   a vector of up to 96 bytes costs two cache lines from each rank, one of 32 bytes a single one
template <class Channel>
task<reduced> reduce_in_window(Channel ch, layout source, layout dest, std::size_t bytes,
                               const cohort::detail::reducer& op, int root);

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/window.hpp>
#endif
