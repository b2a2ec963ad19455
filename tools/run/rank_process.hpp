// SPDX-License-Identifier: BSL-1.0
// One rank as the supervisor sees it: its process, the three pipes it writes to, and how it ended.
#pragma once

#include "../unique_fd.hpp"
#include "lines.hpp"

#include <sys/types.h>
#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace cohort::tool {

using steady = std::chrono::steady_clock;

/// The standard output or standard error of a rank: read without blocking, cut into lines, kept in a log file.
class rank_stream {
 public:
  static constexpr std::size_t tail_lines = 20;

  rank_stream() = default;
  rank_stream(unique_fd pipe, unique_fd log, bool keep_tail);

  /// Reads what is there, up to about `most` bytes. Result: false when there was nothing, or the end was reached.
  bool read_some(std::size_t most, const line_splitter::receiver& line);
  /// Hands on a last line without newline and stops reading.
  void close(const line_splitter::receiver& line);

  [[nodiscard]] bool open() const noexcept { return static_cast<bool>(pipe_); }
  [[nodiscard]] int fd() const noexcept { return pipe_.get(); }
  [[nodiscard]] const std::deque<std::string>& tail() const noexcept { return tail_; }
  /// errno of the first write to the log file that failed, or 0.
  [[nodiscard]] int log_error() const noexcept { return log_error_; }

 private:
  void keep(std::string_view line);
  void log(std::string_view bytes);

  unique_fd pipe_;
  unique_fd log_;
  bool keep_tail_ = false;
  line_splitter lines_;
  std::deque<std::string> tail_;
  int log_error_ = 0;
};

struct rank_process {
  int place = 0;   ///< among the ranks of this node
  int rank = 0;    ///< in the world
  pid_t pid = -1;  ///< also the number of its process group
  unique_fd pidfd;
  rank_stream out;
  rank_stream err;
  unique_fd status;         ///< read end of the pipe behind COHORT_STATUS_FD
  std::string status_line;  ///< the part of a line that has arrived there
  bool joined = false;

  bool ended = false;
  int wait_status = 0;         ///< as waitpid gives it, once ended
  bool asked_to_stop = false;  ///< it still ran when cohort run signalled it
  bool failed_later = false;   ///< it failed by itself, but was not the first
  bool group_gone = false;     ///< nothing is left of its process group
  steady::time_point ended_at{};
  steady::time_point last_output{};
};

/// Takes in what the rank wrote to its status pipe; sets `joined`. Anything but "joined <rank> <size>" is ignored.
void read_status(rank_process& process, int ranks);

/// "exit code 3", "SIGSEGV (Segmentation fault)"
std::string ending_text(int wait_status);
/// What a shell would report: the code, or 128 + signal.
int ending_code(int wait_status);
/// "SIGTERM"
std::string signal_name(int number);
/// "running", "sleeping", "stopped by a signal", ... as the kernel tells it for a process that has not ended.
std::string process_state(pid_t pid);

}  // namespace cohort::tool
