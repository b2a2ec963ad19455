// SPDX-License-Identifier: BSL-1.0
// Bodies of tuning.hpp.
#pragma once

#include <cohort/collective/select.hpp>
#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>
#include <cohort/tuning.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace cohort {
namespace tuning_detail {

struct cost_name {
  std::string_view name;
  double collective::link_costs::*number;
};
inline constexpr cost_name cost_names[] = {
    {"latency", &collective::link_costs::latency},
    {"overhead", &collective::link_costs::overhead},
    {"byte", &collective::link_costs::byte},
    {"combine", &collective::link_costs::combine},
};

[[nodiscard]] inline std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

[[nodiscard]] inline double seconds_of(std::string_view name, std::string_view text) {
  constexpr std::pair<std::string_view, double> units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  double number = 0;
  const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [symbol, factor] : units) {
    const double seconds = number * factor;
    if (trouble == std::errc{} && unit == symbol && seconds >= 0 && seconds <= 1) return seconds;
  }
  throw error(errc::invalid_argument, "tuning: " + std::string{name} + "=" + std::string{text} +
                                          ": expected a time from 0 to 1 s with its unit, such as 3.5us or 0.2ns");
}

inline void take(tuning& into, std::string_view part, unsigned& named) {
  const std::size_t equals = part.find('=');
  const std::string_view key = trimmed(part.substr(0, equals));
  for (std::size_t i = 0; i < std::size(cost_names); ++i) {
    if (key != cost_names[i].name || equals == std::string_view::npos) continue;
    if ((named >> i & 1U) != 0) {
      throw error(errc::invalid_argument, "tuning: " + std::string{key} + " is named twice; leave one of them out");
    }
    named |= 1U << i;
    if (!into.costs) into.costs.emplace();
    (*into.costs).*cost_names[i].number = seconds_of(key, trimmed(part.substr(equals + 1)));
    return;
  }
  // Whether there are collectives of a library's own is for the world that it is applied to.
  collective::selection_table trial(collective::default_selection, true);
  try {
    std::string both = into.algorithms;
    both += (both.empty() ? "" : ",") + std::string{key};
    if (equals != std::string_view::npos) both += "=" + std::string{trimmed(part.substr(equals + 1))};
    trial.override_with(std::string_view{both});
    into.algorithms = std::move(both);
  } catch (const error& wrong) {
    throw error(errc::invalid_argument, "tuning: " + detail::quoted(part) +
                                            " is none of latency, overhead, byte and combine with a time, and as an "
                                            "algorithm: " +
                                            wrong.what());
  }
}

}  // namespace tuning_detail

COHORT_DECL tuning parse_tuning(std::string_view text) {
  tuning result;
  unsigned named = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::size_t comma = line.find(',');
      const std::string_view part = tuning_detail::trimmed(line.substr(0, comma));
      if (!part.empty()) tuning_detail::take(result, part, named);
      line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
    }
  }
  return result;
}

COHORT_DECL std::string to_string(const tuning& t) {
  std::string text;
  if (t.costs) {
    for (const tuning_detail::cost_name& each : tuning_detail::cost_names) {
      // As "%.6g" in the locale "C": another rank reads it, whatever the locale of either.
      std::array<char, 64> number{};
      const std::to_chars_result written = std::to_chars(number.data(), number.data() + number.size(),
                                                         *t.costs.*each.number * 1e9, std::chars_format::general, 6);
      text += (text.empty() ? "" : ",") + std::string{each.name} + "=" + std::string(number.data(), written.ptr) + "ns";
    }
  }
  if (!t.algorithms.empty()) text += (text.empty() ? "" : ",") + t.algorithms;
  return text;
}

COHORT_DECL tuning read_tuning(const std::string& text_or_file) {
  if (text_or_file.empty()) return {};
  if (text_or_file.find('=') != std::string::npos) return parse_tuning(text_or_file);
  const auto refuse = [&text_or_file](const std::string& why) {
    throw error(errc::io_error, "tuning: " + detail::quoted(text_or_file) + " cannot be read: " + why +
                                    "; expected a file that `cohort tune` has written, or text such as "
                                    "latency=3us,byte=0.2ns");
  };
  const int file = ::open(text_or_file.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse(std::strerror(errno));
  std::array<char, 4096> text{};
  std::size_t length = 0;
  ssize_t got = 0;
  while (length < text.size() && (got = ::read(file, text.data() + length, text.size() - length)) > 0) {
    length += static_cast<std::size_t>(got);
  }
  const int trouble = got < 0 ? errno : 0;
  ::close(file);
  if (trouble != 0) refuse(std::strerror(trouble));
  if (length == text.size()) refuse("it is longer than a tuning can be");
  try {
    return parse_tuning({text.data(), length});
  } catch (const error& wrong) {
    throw error(errc::invalid_argument, text_or_file + ": " + wrong.what());
  }
}

}  // namespace cohort
