// expect: premultiplied_sum of an integer type needs an integer factor
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::premultiplied_sum<float>, int>());
#else
static_assert(cohort::check_reduction<cohort::premultiplied_sum<int>, int>());
#endif
