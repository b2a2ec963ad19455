// SPDX-License-Identifier: BSL-1.0
// Bodies of detail/print_failure.hpp.
#pragma once

#include <cohort/detail/print_failure.hpp>

#include <cstdio>
#include <string>

namespace cohort::detail {

COHORT_DECL void print_failure(int rank, const std::string& host, const char* what) noexcept {
  try {
    const std::string line = "cohort: rank " + (rank < 0 ? std::string{"?"} : std::to_string(rank)) +
                             (host.empty() ? std::string{} : " on " + host) + ": " + what + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
  } catch (...) {
    std::fputs("cohort: out of memory while reporting an error\n", stderr);
  }
}

}  // namespace cohort::detail
