// SPDX-License-Identifier: BSL-1.0
// How long a message may be that MPI sends without asking its receiver, over TCP. Used by endpoint.hpp, which cuts what is
// longer, and by selection.hpp.
#pragma once

#include <cohort/mpi/header.hpp>

#include <cstddef>

namespace cohort::detail {

/// `unasked_by_mpi`: of Open MPI as it is configured without a wish of the user's, of MPICH the UCX that carries it.
/// `most_parts`: how many of these a longer message may need, and still arrive sooner than if MPI asks about it.
/// `follow_each_other`: of those that are sent one right after the other, all but the first arrive sooner if MPI does ask about
/// them, behind a header each: none of them is copied then, where a receiver that lags behind copies parts three times.
/// Nothing depends on any of these but time, and when a send without the check is complete.
#ifdef OPEN_MPI
inline constexpr std::size_t unasked_by_mpi = (std::size_t{64} << 10) - 128;
inline constexpr std::size_t most_parts = 2;
inline constexpr bool follow_each_other = true;
#else
inline constexpr std::size_t unasked_by_mpi = (std::size_t{20} << 10) + 64;
inline constexpr std::size_t most_parts = 4;
inline constexpr bool follow_each_other = false;
#endif

}  // namespace cohort::detail
