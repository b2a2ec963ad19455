// SPDX-License-Identifier: BSL-1.0
#include "progress.hpp"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>

namespace training {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int columns(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

std::string padded_percent(double part) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), " %3.0f %%", 100 * part);
  return text.data();
}

std::string seconds(double count) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.0f s", std::ceil(count));
  return text.data();
}

}  // namespace

progress::progress(std::FILE* out, bool terminal, int epochs)
    : out_(out), terminal_(terminal), epochs_(epochs), started_(now()) {}

void progress::draw(double done, int epoch) {
  constexpr int widest = 24;
  constexpr int narrowest = 4;
  drawn_ = now();
  const std::string before = "epoch " + std::to_string(epoch) + "/" + std::to_string(epochs_);
  std::string after = padded_percent(done) + status_;
  if (done > 0) after += "  " + seconds((drawn_ - started_) * (1 - done) / done) + " left";

  // A line that reached the edge of the terminal would wrap, and a carriage return would not lead back to its start.
  const int room = columns(out_) - 1;
  const int width = std::min(widest, room - static_cast<int>(before.size() + after.size() + std::strlen(" []")));
  std::string line = before;
  if (width >= narrowest) {
    const auto filled = static_cast<std::size_t>(std::lround(done * width));
    line += " [" + std::string(filled, '#') + std::string(static_cast<std::size_t>(width) - filled, '.') + "]";
  }
  line = (line + after).substr(0, static_cast<std::size_t>(room));
  std::fprintf(out_, "\r\x1b[K%s", line.c_str());
  std::fflush(out_);
}

void progress::within_epoch(int epoch, double part) {
  if (terminal_ && now() - drawn_ >= 0.1) draw((epoch + part) / epochs_, epoch + 1);
}

void progress::epoch_done(int epoch, double loss, double accuracy) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "  loss %.4f  test accuracy %.1f %%", loss, 100 * accuracy);
  status_ = text.data();
  if (terminal_) {
    draw((epoch + 1.0) / epochs_, epoch + 1);
  } else {
    std::fprintf(out_, "epoch %*d/%d%s\n", static_cast<int>(std::to_string(epochs_).size()), epoch + 1, epochs_,
                 status_.c_str());
    std::fflush(out_);
  }
}

void progress::finish() {
  if (terminal_) std::fputs("\r\x1b[K", out_);
}

}  // namespace training
