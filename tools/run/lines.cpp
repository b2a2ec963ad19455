// SPDX-License-Identifier: BSL-1.0
#include "lines.hpp"

namespace cohort::tool {

void line_splitter::feed(std::string_view bytes, const receiver& line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    std::string_view part = bytes.substr(0, end);
    while (begun_.size() + part.size() > longest) {
      const std::size_t room = longest - begun_.size();
      begun_.append(part.substr(0, room));
      part.remove_prefix(room);
      line(begun_, true);
      begun_.clear();
    }
    begun_.append(part);
    if (end == std::string_view::npos) return;
    line(begun_, false);
    begun_.clear();
    bytes.remove_prefix(end + 1);
  }
}

void line_splitter::finish(const receiver& line) {
  if (begun_.empty()) return;
  line(begun_, false);
  begun_.clear();
}

}  // namespace cohort::tool
