// SPDX-License-Identifier: BSL-1.0
// The last words of a rank that an error has ended. Used by run.hpp.
#pragma once

#include <cohort/detail/config.hpp>

#include <string>

namespace cohort::detail {

/// One line on stderr: which rank, where, what. The sentence of a cohort::error names operation and number itself.
void print_failure(int rank, const std::string& host, const char* what) noexcept;

}  // namespace cohort::detail

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/detail/impl/print_failure.hpp>
#endif
