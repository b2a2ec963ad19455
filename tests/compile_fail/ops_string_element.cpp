// expect: an element type must be trivially copyable, because its bytes are what travels: send strings .* send_object
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <array>
#include <string>

#ifdef COHORT_FAIL
static_assert(cohort::check_element<std::string>());
#else
static_assert(cohort::check_element<std::array<char, 16>>());
#endif
