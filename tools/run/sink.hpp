// SPDX-License-Identifier: BSL-1.0
// Writes to standard output or standard error without ever blocking: what the reader does not take now is kept, and
// each text goes out in one write. Used by the console.
#pragma once

#include "../unique_fd.hpp"

#include <cstddef>
#include <deque>
#include <string>

namespace cohort::tool {

class sink {
 public:
  /// Lifetime: `fd` stays open, and its flags stay as they are: they belong to the shell as well.
  explicit sink(int fd);

  /// Sends `text`, or keeps what cannot be sent now.
  void write(std::string text);
  /// Sends what was kept. Result: true when nothing is left.
  bool flush();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool terminal() const noexcept { return terminal_; }
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }
  /// errno of the first write that failed; from then on everything is dropped. 0: none failed.
  [[nodiscard]] int error() const noexcept { return error_; }

 private:
  ssize_t put(const char* data, std::size_t size);

  unique_fd own_;
  int fd_;
  bool terminal_ = false;
  bool socket_ = false;
  bool may_block_ = false;
  std::deque<std::string> queue_;
  std::size_t sent_ = 0;  // of the first in the queue
  std::size_t pending_ = 0;
  int error_ = 0;
};

}  // namespace cohort::tool
