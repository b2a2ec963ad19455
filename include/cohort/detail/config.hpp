// SPDX-License-Identifier: BSL-1.0
// What the compiler must offer, checked before anything else of cohort is read.
//
// How the bodies of functions that are no templates are compiled: with every header that declares them, or once.
// COHORT_SEPARATE_COMPILATION, defined for the whole program, leaves them to the one source that includes src.hpp.
#pragma once

#if !defined(__cpp_impl_coroutine) || !defined(__cpp_concepts) || __cplusplus < 202002L
#error "cohort needs C++20 with coroutines and concepts: compile with -std=c++20 (g++ 12 or newer, clang 14 or newer)"
#endif
#if !defined(__cpp_exceptions)
#error "cohort reports failures by exceptions: compile without -fno-exceptions"
#endif

#if defined(COHORT_SEPARATE_COMPILATION)
#define COHORT_DECL
#else
#define COHORT_DECL inline
#endif

// Before a function that waits for a line of another core by looking at it. How often it looks decides how often it takes the
// line away from its writer, and where its loop happens to lie in memory decides that: up to a third of a short call, one
// way or the other, by changes elsewhere in the program. And before the short functions that every call in memory passes,
// some of them several times: a tenth.
#define COHORT_ALIGNED [[gnu::aligned(64)]]
