// expect: lacks the operator of this functor .*pass a functor: all_reduce\(x, \[\]\(const S& a, const S& b\)
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

struct particle {
  float mass;
  float charge;
};

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::sum, particle>());
#else
constexpr auto add = [](const particle& a, const particle& b) {
  return particle{a.mass + b.mass, a.charge + b.charge};
};
static_assert(cohort::check_reduction<decltype(add), particle>());
#endif
