// SPDX-License-Identifier: BSL-1.0
// The vector of what lives as long as one operation: its memory comes from the pool of frames and costs no allocation in
// steady state.
#pragma once

#include <cohort/detail/frame_pool.hpp>

#include <vector>

namespace cohort::collective::detail {

template <class T>
using short_vector = std::vector<T, cohort::detail::pool_allocator<T>>;

}  // namespace cohort::collective::detail
