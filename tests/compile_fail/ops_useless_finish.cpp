// expect: the functor's finish would never be called: it must be T finish.const T&, int ranks. const
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <cmath>

struct root_mean_square {
  double operator()(double a, double b) const { return a + b; }
  double prepare(double own, int) const { return own * own; }
#ifdef COHORT_FAIL
  double finish(double total) const { return std::sqrt(total); }
#else
  double finish(double total, int ranks) const { return std::sqrt(total / ranks); }
#endif
};
static_assert(cohort::check_reduction<root_mean_square, double>());
