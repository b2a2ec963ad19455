// SPDX-License-Identifier: BSL-1.0
// How a reduction of ranks that share memory has ended. Used by reduce.hpp and by who calls it.
#pragma once

namespace cohort::collective {

/// How a reduction in the window has ended, on every rank.
enum class reduced : unsigned char {
  not_at_all,  ///< the window cannot be opened
  combined,    ///< the functor's `finish` remains to be applied
  finished,
};

}  // namespace cohort::collective
