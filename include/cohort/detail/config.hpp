// SPDX-License-Identifier: BSL-1.0
// How the bodies of functions that are no templates are compiled: with every header that declares them, or once.
// COHORT_SEPARATE_COMPILATION, defined for the whole program, leaves them to the one source that includes src.hpp.
#pragma once

#if defined(COHORT_SEPARATE_COMPILATION)
#define COHORT_DECL
#else
#define COHORT_DECL inline
#endif
