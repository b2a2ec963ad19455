// SPDX-License-Identifier: BSL-1.0
// What tests ask of errors: with which one an operation ended.
#pragma once

#include "text.hpp"

#include <cohort/error.hpp>
#include <cohort/task.hpp>

#include <optional>
#include <string>
#include <utility>

namespace harness {

/// The error that awaiting `op` ends with, if it does.
template <class Operation>
[[nodiscard]] cohort::task<std::optional<cohort::error>> error_after(Operation op) {
  std::optional<cohort::error> failure;
  try {
    static_cast<void>(co_await op);
  } catch (const cohort::error& e) {
    failure.emplace(e);
  }
  co_return failure;
}

[[nodiscard]] inline std::string text_of(const std::optional<cohort::error>& e) { return e ? e->what() : "no error"; }

/// Its text, or "no error".
template <class Operation>
[[nodiscard]] cohort::task<std::string> text_after(Operation op) {
  auto ended = error_after(std::move(op));
  co_return text_of(co_await ended);
}

}  // namespace harness
