// SPDX-License-Identifier: BSL-1.0
#include "rank_list.hpp"

#include <charconv>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace cohort::tool {

int parse_count(std::string_view text, int limit) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && value >= 0 && value <= limit ? value : -1;
}

std::vector<bool> parse_ranks(std::string_view text, int ranks) {
  std::vector<bool> chosen(static_cast<std::size_t>(ranks), false);
  const std::string whole(text);
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const std::size_t dash = part.find('-');
    constexpr int most = std::numeric_limits<int>::max();
    const int first = parse_count(part.substr(0, dash), most);
    const int last = dash == std::string_view::npos ? first : parse_count(part.substr(dash + 1), most);
    if (first < 0 || last < first) {
      throw std::invalid_argument("'" + whole + "' is not a list of ranks, expected one like 0,4-7");
    }
    if (last >= ranks) {
      throw std::invalid_argument("rank " + std::to_string(last) + " does not exist, the ranks are 0.." +
                                  std::to_string(ranks - 1));
    }
    for (int rank = first; rank <= last; ++rank) chosen[static_cast<std::size_t>(rank)] = true;
    if (part.size() == text.size()) return chosen;
    text.remove_prefix(part.size() + 1);
  }
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last == i + 1) last = i;  // "1, 2" reads better than "1-2"
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace cohort::tool
