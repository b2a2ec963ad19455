// SPDX-License-Identifier: BSL-1.0
// Bodies of operation.hpp that are no templates.
#pragma once

#include <cohort/operation.hpp>

#include <exception>
#include <string>
#include <utility>

namespace cohort::detail {

COHORT_DECL void operation_promise_base::blame_user_function() noexcept {
  group& g = call_.home();
  if (!failure_ || g.failure() || call_.alone()) return;
  try {
    std::string text = "a function of rank " + std::to_string(g.rank()) + " threw";
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& e) {
      text += std::string{": "} + e.what();
    } catch (...) {
      text += " something that is not a std::exception";
    }
    engine().report_mismatch(g, call_.sequence(), engine().rank(), errc::user_function_failed, std::move(text));
  } catch (...) {
    // No memory for the text: the others still learn of it, when this rank's communicator goes.
    failure_ = std::current_exception();
  }
}

}  // namespace cohort::detail
