// SPDX-License-Identifier: BSL-1.0
// What tests ask of texts. It knows nothing of the library.
#pragma once

#include <string_view>

namespace harness {

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace harness
