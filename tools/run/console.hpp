// SPDX-License-Identifier: BSL-1.0
// What the user sees: the ranks' lines with their prefixes, notes of cohort run itself, and on a terminal one status
// line below them all.
#pragma once

#include "options.hpp"
#include "sink.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {

enum class stream { out, err };

class console {
 public:
  console(const run_options& options, const std::string& host);

  /// One line of a rank, on the stream that the rank wrote it to.
  void rank_line(stream to, int rank, std::string_view line, bool cut);
  /// "cohort run: <text>" on stderr.
  void note(const std::string& text);
  /// Lines on stderr as they are, in one write; the first and last in colour on a terminal.
  void block(const std::vector<std::string>& lines);
  /// The status line; empty removes it.
  void set_status(const std::string& text);
  /// Puts the status line back below lines that were written over it.
  void refresh();

  [[nodiscard]] sink& to(stream s) noexcept { return s == stream::out ? out_ : err_; }

 private:
  void write(sink& to, std::string text);
  std::string prefix(const sink& to, tag_kind tag, const std::string& host, int rank) const;

  sink out_;
  sink err_;
  bool coloured_;
  std::array<std::vector<std::string>, 2> prefixes_;
  std::string status_;
  bool status_visible_ = false;
};

}  // namespace cohort::tool
