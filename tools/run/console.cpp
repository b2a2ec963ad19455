// SPDX-License-Identifier: BSL-1.0
#include "console.hpp"

#include "lines.hpp"

#include <sys/ioctl.h>

#include <cstdlib>
#include <cstring>

namespace cohort::tool {
namespace {

constexpr const char* erase_line = "\r\x1b[2K";
constexpr const char* plain_again = "\x1b[0m";
constexpr const char* alarm = "\x1b[1;31m";

// Red is kept for failures.
constexpr std::array<const char*, 10> rank_colours{"\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m",
                                                   "\x1b[96m", "\x1b[93m", "\x1b[92m", "\x1b[95m", "\x1b[94m"};

// https://no-color.org: set and not empty means no colour.
bool colours_wanted() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (refused == nullptr || *refused == '\0') && (terminal == nullptr || std::strcmp(terminal, "dumb") != 0);
}

std::size_t columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

console::console(const run_options& options, const std::string& host)
    : out_(STDOUT_FILENO), err_(STDERR_FILENO), coloured_(colours_wanted()) {
  for (int place = 0; place < options.ranks; ++place) {
    prefixes_[0].push_back(prefix(out_, options.tag, host, options.world_rank(place)));
    prefixes_[1].push_back(prefix(err_, options.tag, host, options.world_rank(place)));
  }
}

std::string console::prefix(const sink& to, tag_kind tag, const std::string& host, int rank) const {
  if (tag == tag_kind::none) return {};
  const std::string number = std::to_string(rank);
  const std::string text = tag == tag_kind::host ? "[" + host + ":" + number + "]" : "[" + number + "]";
  if (!coloured_ || !to.terminal()) return text + " ";
  return rank_colours[static_cast<std::size_t>(rank) % rank_colours.size()] + text + plain_again + " ";
}

void console::rank_line(stream to_stream, int place, std::string_view line, bool cut) {
  const std::size_t which = to_stream == stream::out ? 0 : 1;
  std::string text = prefixes_[which][static_cast<std::size_t>(place)];
  text += line;
  if (cut) text += " [cohort run: line longer than " + std::to_string(line_splitter::longest) + " bytes, cut here]";
  text += '\n';
  write(to(to_stream), std::move(text));
}

void console::note(const std::string& text) { write(err_, "cohort run: " + text + "\n"); }

void console::block(const std::vector<std::string>& lines) {
  const bool colour = coloured_ && err_.terminal();
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool border = colour && (i == 0 || i + 1 == lines.size());
    text += border ? alarm + lines[i] + plain_again : lines[i];
    text += '\n';
  }
  write(err_, std::move(text));
}

void console::write(sink& to_sink, std::string text) {
  if (status_visible_ && to_sink.terminal()) {
    text.insert(0, erase_line);
    status_visible_ = false;
  }
  to_sink.write(std::move(text));
}

void console::set_status(const std::string& text) {
  if (text == status_) return;
  status_ = text;
  if (status_visible_) err_.write(erase_line);
  status_visible_ = false;
  refresh();
}

void console::refresh() {
  if (status_.empty() || status_visible_ || !err_.terminal()) return;
  // One column less: a full line would wrap on some terminals, and could then not be erased.
  err_.write(erase_line + status_.substr(0, columns(err_.fd()) - 1));
  status_visible_ = true;
}

}  // namespace cohort::tool
