// expect: 8-bit floats are storage only: convert to float
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::sum, cohort::float8_e4m3>());
#else
static_assert(cohort::check_reduction<cohort::sum, cohort::bfloat16>());
#endif
