// expect: complex numbers have no order, so no min and max: reduce std::abs or std::norm
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <complex>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::max, std::complex<float>>());
#else
static_assert(cohort::check_reduction<cohort::sum, std::complex<float>>());
#endif
