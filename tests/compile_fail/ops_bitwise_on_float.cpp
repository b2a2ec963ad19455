// expect: a bitwise operation on a floating-point type means nothing: reduce an unsigned integer
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::bit_xor, float>());
#else
static_assert(cohort::check_reduction<cohort::bit_xor, unsigned>());
#endif
