// SPDX-License-Identifier: BSL-1.0
// A report as people read it, and as programs do.
#pragma once

#include "finding.hpp"

#include <string>

namespace cohort::tool {

[[nodiscard]] std::string text_of(const doctor_report& report);
[[nodiscard]] std::string json_of(const doctor_report& report);

}  // namespace cohort::tool
