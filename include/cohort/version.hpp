// SPDX-License-Identifier: BSL-1.0
// The version of the library, for the preprocessor and for programs. Every other part, the build files included,
// takes it from here.
#pragma once

#include <string_view>

#define COHORT_VERSION_MAJOR 0
#define COHORT_VERSION_MINOR 1
#define COHORT_VERSION_PATCH 0

/// One number to compare: major * 1'000'000 + minor * 1'000 + patch.
#define COHORT_VERSION (COHORT_VERSION_MAJOR * 1000000 + COHORT_VERSION_MINOR * 1000 + COHORT_VERSION_PATCH)

/// 1 when this is `major.minor.patch` or later: `#if COHORT_VERSION_AT_LEAST(0, 1, 0)`.
#define COHORT_VERSION_AT_LEAST(major, minor, patch) \
  (COHORT_VERSION >= ((major) * 1000000 + (minor) * 1000 + (patch)))

#define COHORT_DETAIL_TEXT_(x) #x
#define COHORT_DETAIL_TEXT(x) COHORT_DETAIL_TEXT_(x)

namespace cohort {

/// "major.minor.patch"
inline constexpr std::string_view version_string =
    COHORT_DETAIL_TEXT(COHORT_VERSION_MAJOR) "." COHORT_DETAIL_TEXT(COHORT_VERSION_MINOR) "." COHORT_DETAIL_TEXT(
        COHORT_VERSION_PATCH);

}  // namespace cohort

#undef COHORT_DETAIL_TEXT
#undef COHORT_DETAIL_TEXT_
