// expect: this is not a functor for these elements, op.a, b. does not compile: pass
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#ifdef COHORT_FAIL
constexpr auto larger = [](const float* a, const float* b) { return *a > *b ? *a : *b; };
#else
constexpr auto larger = [](float a, float b) { return a > b ? a : b; };
#endif
static_assert(cohort::check_reduction<decltype(larger), float>());
