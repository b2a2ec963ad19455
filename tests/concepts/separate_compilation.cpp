// SPDX-License-Identifier: BSL-1.0
// In a program that takes the bodies from one source (cohort/src.hpp), no other source pays for Boost.Asio.
#include <cohort/cohort.hpp>

#ifndef COHORT_SEPARATE_COMPILATION
#error "this test is compiled with COHORT_SEPARATE_COMPILATION"
#endif
#if defined(BOOST_ASIO_VERSION) || defined(BOOST_ASIO_DETAIL_CONFIG_HPP)
#error "cohort.hpp includes Boost.Asio although the bodies are compiled elsewhere"
#endif

static_assert(cohort::backend<cohort::cpu>);
