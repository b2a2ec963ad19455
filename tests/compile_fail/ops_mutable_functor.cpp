// expect: can only be called when it is not const: remove 'mutable' from the lambda
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <type_traits>

inline bool reduces() {
#ifdef COHORT_FAIL
  const auto op = [calls = 0](int a, int b) mutable { return a + b + 0 * ++calls; };
#else
  const auto op = [](int a, int b) { return a + b; };
#endif
  return cohort::check_reduction<std::remove_const_t<decltype(op)>, int>();
}
