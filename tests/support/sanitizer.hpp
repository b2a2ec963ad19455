// SPDX-License-Identifier: BSL-1.0
// Whether a test is built with a sanitizer. Each access then takes several times as long, and what is looked for is
// another thing: tests that go through thousands of cases go through a cross-section of them.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COHORT_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COHORT_TEST_SANITIZED 1
#endif
#endif
#ifndef COHORT_TEST_SANITIZED
#define COHORT_TEST_SANITIZED 0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define COHORT_TEST_ADDRESS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COHORT_TEST_ADDRESS_SANITIZED 1
#endif
#endif
#ifndef COHORT_TEST_ADDRESS_SANITIZED
#define COHORT_TEST_ADDRESS_SANITIZED 0
#endif

#if defined(__SANITIZE_THREAD__)
#define COHORT_TEST_THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COHORT_TEST_THREAD_SANITIZED 1
#endif
#endif
#ifndef COHORT_TEST_THREAD_SANITIZED
#define COHORT_TEST_THREAD_SANITIZED 0
#endif

// Of a function that makes or compares what a test needs, element by element: with a sanitizer most of a test's time would
// go there. What it calls is looked at as ever; but what is inlined into it must be of this kind too, as g++ would forget to
// give back the stack of that.
#if defined(__clang__)
#define COHORT_TEST_NOT_SANITIZED [[clang::no_sanitize("address", "thread", "undefined")]]
#else
#define COHORT_TEST_NOT_SANITIZED [[gnu::no_sanitize("address", "thread", "undefined")]]
#endif

namespace harness {

inline constexpr bool sanitized = COHORT_TEST_SANITIZED != 0;
inline constexpr bool thread_sanitized = COHORT_TEST_THREAD_SANITIZED != 0;

}  // namespace harness
