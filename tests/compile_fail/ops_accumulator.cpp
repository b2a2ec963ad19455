// expect: the functor cannot be called with its accumulator type, .* correct the specialisation of cohort::accumulator
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

struct wide {
  long value;
};
struct add {
  int operator()(int a, int b) const { return a + b; }
};
template <>
struct cohort::accumulator<add, int> {
#ifdef COHORT_FAIL
  using type = wide;
#else
  using type = long long;
#endif
};
static_assert(cohort::check_reduction<add, int>());
