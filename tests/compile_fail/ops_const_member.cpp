// expect: elements are combined in place, so their type must be assignable: remove const from its members
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

struct sample {
#ifdef COHORT_FAIL
  const int value;
#else
  int value;
#endif
};
constexpr auto first = [](const sample& a, const sample&) { return a; };
static_assert(cohort::check_reduction<decltype(first), sample>());
