// expect: std::vector<bool> packs its bits, so there is no array of bool to send: use std::vector<char>
// SPDX-License-Identifier: BSL-1.0
#include <cohort/check_reduction.hpp>

#include <array>
#include <vector>

#ifdef COHORT_FAIL
static_assert(cohort::check_element<std::vector<bool>>());
#else
static_assert(cohort::check_element<std::array<bool, 8>>());
#endif
