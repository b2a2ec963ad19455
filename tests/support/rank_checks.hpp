// SPDX-License-Identifier: BSL-1.0
// Checks within a rank of a test: what does not hold is printed, and ends the rank with exit code 1.
#pragma once

#include <cstdio>

#define REQUIRE_RANK(...)                                                    \
  do {                                                                       \
    if (!(__VA_ARGS__)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      return 1;                                                              \
    }                                                                        \
  } while (false)
#define CO_REQUIRE_RANK(...)                                                 \
  do {                                                                       \
    if (!(__VA_ARGS__)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
      co_return 1;                                                           \
    }                                                                        \
  } while (false)
