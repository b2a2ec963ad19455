// expect: a bitwise operation on a floating-point type means nothing
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <functional>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<std::bit_and<>, cohort::half>());
#else
static_assert(cohort::check_reduction<std::plus<>, cohort::half>());
#endif
