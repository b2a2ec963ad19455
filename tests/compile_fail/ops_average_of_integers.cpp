// expect: average of an integer type truncates: use sum and divide, or reduce in float
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::average, int>());
#else
static_assert(cohort::check_reduction<cohort::average, double>());
#endif
