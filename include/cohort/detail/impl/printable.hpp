// SPDX-License-Identifier: BSL-1.0
// Bodies of detail/printable.hpp.
#pragma once

#include <cohort/detail/printable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::detail {

COHORT_DECL std::string duration_text(std::chrono::nanoseconds d) {
  const double seconds = std::chrono::duration<double>(d).count();
  char text[48] = {};
  if (d < std::chrono::seconds(1)) {
    std::snprintf(text, sizeof text, "%.0f ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.4g s", seconds);
  }
  return text;
}

COHORT_DECL std::string quoted(std::string_view bytes) {
  constexpr std::size_t most = 64;
  std::string text = "\"";
  for (const char c : bytes.substr(0, most)) {
    const unsigned value = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (value >= 0x20 && value < 0x7f) {
      text += c;
    } else {
      char escape[8] = {};
      std::snprintf(escape, sizeof escape, "\\x%02x", value);
      text += escape;
    }
  }
  text += '"';
  if (bytes.size() > most) text += "... (" + std::to_string(bytes.size()) + " bytes)";
  return text;
}

COHORT_DECL std::string listed(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most) text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

COHORT_DECL std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    std::string run = std::to_string(ranks[i]);
    if (last > i) run += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    runs.push_back(run);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + listed(runs);
}

}  // namespace cohort::detail
