// expect: an address .* means nothing in another process: send what it points to
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <string_view>

#ifdef COHORT_FAIL
static_assert(cohort::check_reduction<cohort::max, std::string_view>());
#else
static_assert(cohort::check_reduction<cohort::max, char>());
#endif
