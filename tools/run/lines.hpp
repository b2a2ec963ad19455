// SPDX-License-Identifier: BSL-1.0
// Cuts a stream of bytes into lines. A line is handed on when it is whole, so that ranks never write into each other's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace cohort::tool {

class line_splitter {
 public:
  static constexpr std::size_t longest = 64 * 1024;
  /// `cut` is true when the line was longer than `longest` and goes on in the next call.
  using receiver = std::function<void(std::string_view line, bool cut)>;

  void feed(std::string_view bytes, const receiver& line);
  /// Hands on a last line without a newline.
  void finish(const receiver& line);

 private:
  std::string begun_;
};

}  // namespace cohort::tool
