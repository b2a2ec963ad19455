// SPDX-License-Identifier: BSL-1.0
// A region of one layout copied to a region of another: a rank's own block, and what a schedule does locally.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/detail/config.hpp>

namespace cohort::collective::detail {

/// Regions of one size, whose runs may be cut differently; nothing where they are the same memory.
void copy_region(const layout& from, region a, const layout& to, region b);

}  // namespace cohort::collective::detail

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/copy_region.hpp>
#endif
