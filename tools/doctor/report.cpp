// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include "judge.hpp"

#include <cohort/detail/printable.hpp>

#include <boost/json.hpp>

#include <algorithm>
#include <cstdio>

namespace cohort::tool {
namespace {

constexpr std::size_t page = 110;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}
std::string right(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

// Breaks at spaces; every line but the first is indented.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (column > indent && column + 1 + length > page) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(at, length);
    column += length;
    at = end + 1;
  }
  return result;
}

std::string name_of(severity s) { return s == severity::ok ? "ok" : s == severity::warning ? "warning" : "PROBLEM"; }

std::string findings_text(const doctor_report& report) {
  constexpr std::size_t levels = 9;
  constexpr std::size_t abouts = 18;
  std::string text;
  for (const finding& each : report.findings) {
    const bool of_all = each.ranks.empty() || each.ranks.size() == report.ranks.size();
    const std::string who = of_all ? "" : " [" + detail::ranks_text(each.ranks) + "]";
    text += padded(name_of(each.level), levels) + padded(each.about, abouts) +
            wrapped(each.text + who, levels + abouts) + "\n";
    if (!each.advice.empty()) {
      text += std::string(levels + abouts - 3, ' ') + "-> " + wrapped(each.advice, levels + abouts) + "\n";
    }
  }
  return text;
}

std::string hosts_text(const doctor_report& report) {
  std::string text;
  for (const auto& ranks : hosts_of(report.ranks)) {
    std::vector<int> numbers;
    for (const rank_record* const each : ranks) numbers.push_back(each->rank);
    const rank_record& first = *ranks.front();
    std::string at = first.address;
    for (const network_interface& each : first.interfaces) {
      if (each.chosen) at += " (" + each.name + ")";
    }
    text += "  " + first.host + ": " + detail::ranks_text(numbers) + (at.empty() ? "" : ", at " + at) + "\n";
  }
  return text;
}

std::string microseconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 9.95 ? "%.1f" : "%.0f", value);
  return text;
}

std::string three(const round_trip& t) {
  return microseconds(t.min) + " " + microseconds(t.median) + " " + microseconds(t.max);
}

// A table of all pairs; for more ranks than fit on a page, of the slowest ones only.
std::string round_trips_text(const doctor_report& report) {
  if (report.round_trips_us.empty()) return {};
  constexpr int most_in_a_table = 6;
  std::string text = "\nRound trips of 8 bytes, in microseconds: minimum, median, maximum of 25\n";
  if (report.world_size <= most_in_a_table) {
    std::size_t width = 0;
    for (const round_trip& each : report.round_trips_us) width = std::max(width, three(each).size());
    text += padded("  rank", 7);
    for (int r = 1; r < report.world_size; ++r) text += "  " + right(std::to_string(r), width);
    text += "\n";
    for (int from = 0; from + 1 < report.world_size; ++from) {
      text += right(std::to_string(from), 6) + " ";
      for (int to = 1; to < report.world_size; ++to) {
        const auto pair = std::find_if(report.round_trips_us.begin(), report.round_trips_us.end(),
                                       [&](const round_trip& t) { return t.from == from && t.to == to; });
        text += "  " + right(pair == report.round_trips_us.end() ? "" : three(*pair), width);
      }
      text += "\n";
    }
    return text;
  }
  std::vector<round_trip> slowest = report.round_trips_us;
  std::sort(slowest.begin(), slowest.end(),
            [](const round_trip& a, const round_trip& b) { return a.median > b.median; });
  for (const bool shared : {true, false}) {
    std::vector<double> medians;
    for (const round_trip& each : slowest) {
      if (each.shared_memory == shared) medians.push_back(each.median);
    }
    if (medians.empty()) continue;
    const round_trip all{0, 0, medians.back(), medians[medians.size() / 2], medians.front(), shared};
    text += "  " + std::to_string(medians.size()) + " pairs by " + (shared ? "shared memory" : "TCP") +
            ", the medians of each: " + three(all) + "\n";
  }
  constexpr std::size_t worst = 3;
  for (std::size_t i = 0; i < std::min(worst, slowest.size()); ++i) {
    text += "  slowest: rank " + std::to_string(slowest[i].from) + " and rank " + std::to_string(slowest[i].to) + ": " +
            three(slowest[i]) + "\n";
  }
  return text;
}

std::string count_text(const doctor_report& report, severity level, const std::string& what) {
  const auto n = std::count_if(report.findings.begin(), report.findings.end(),
                               [level](const finding& each) { return each.level == level; });
  return (n == 0 ? "no" : std::to_string(n)) + " " + what + (n == 1 ? "" : "s");
}

std::string ending_text(const doctor_report& report) {
  std::string text("\n");
  text += count_text(report, severity::problem, "problem") + ", " + count_text(report, severity::warning, "warning");
  if (report.exports.empty()) return text + "\n";
  const bool mends = std::any_of(report.findings.begin(), report.findings.end(),
                                 [](const finding& each) { return !each.line.empty(); });
  text += mends                                 ? "; what may mend them:\n"
          : report.verdict == severity::problem ? "; where the ranks were to meet:\n"
          : report.world_size == 1              ? "; for ranks that shall meet on this host:\n"
                                                : "; the same meeting, under any launcher:\n";
  for (const std::string& each : report.exports) text += each + "\n";
  return text;
}

}  // namespace

std::string text_of(const doctor_report& report) {
  std::string text = "cohort " + report.version + ", " + std::to_string(report.world_size) +
                     (report.world_size == 1 ? " rank" : " ranks") + ", launcher: " + report.launcher;
  if (!report.meeting.empty()) text += ", meeting at " + report.meeting;
  return text + "\n" + hosts_text(report) + "\n" + findings_text(report) + round_trips_text(report) +
         ending_text(report);
}

std::string json_of(const doctor_report& report) {
  return boost::json::serialize(boost::json::value_from(report)) + "\n";
}

}  // namespace cohort::tool
