// expect: the functor's result does not convert to the element type: return an element from it
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

struct interval {
  float low;
  float high;
};
#ifdef COHORT_FAIL
constexpr auto widest = [](interval a, interval b) { return a.high - a.low > b.high - b.low; };
#else
constexpr auto widest = [](interval a, interval b) { return a.high - a.low > b.high - b.low ? a : b; };
#endif
static_assert(cohort::check_reduction<decltype(widest), interval>());
