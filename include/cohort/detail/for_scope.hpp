// SPDX-License-Identifier: BSL-1.0
// A variable that has another value until the end of a scope, also when an exception ends it. Used by transport/.
#pragma once

#include <utility>

namespace cohort::detail {

template <class T>
class for_scope {
 public:
  for_scope(T& variable, T value) noexcept : variable_(variable), before_(std::exchange(variable, value)) {}
  for_scope(const for_scope&) = delete;
  for_scope& operator=(const for_scope&) = delete;
  ~for_scope() { variable_ = before_; }

 private:
  T& variable_;
  T before_;
};

}  // namespace cohort::detail
