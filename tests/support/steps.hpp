// SPDX-License-Identifier: BSL-1.0
// Blocks of numbers of which each place has its own, for tests that move megabytes: made and compared without the sanitizers'
// instructions, where most of such a test's time would go.
#pragma once

#include "sanitizer.hpp"

#include <cstddef>

namespace harness {

/// `first`, and every element `each` more than the one before, for a thousand of them, again and again.
COHORT_TEST_NOT_SANITIZED inline void put_steps(int* at, std::size_t count, int first, int each) {
  for (std::size_t i = 0; i < count; ++i) at[i] = first + each * static_cast<int>(i % 1000);
}

/// Whether that is what is there.
COHORT_TEST_NOT_SANITIZED inline bool are_steps(const int* at, std::size_t count, int first, int each) {
  for (std::size_t i = 0; i < count; ++i) {
    if (at[i] != first + each * static_cast<int>(i % 1000)) return false;
  }
  return true;
}

}  // namespace harness
