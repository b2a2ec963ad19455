// SPDX-License-Identifier: BSL-1.0
#include "rank_process.hpp"

#include "../command.hpp"

#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>

namespace cohort::tool {
namespace {

constexpr std::size_t longest_tail_line = 1000;
constexpr std::size_t longest_status_line = 128;

// Several streams are read in turn by one thread; a buffer each would only cost memory.
std::array<char, 64 * 1024>& read_buffer() {
  static std::array<char, 64 * 1024> buffer;
  return buffer;
}

}  // namespace

rank_stream::rank_stream(unique_fd pipe, unique_fd log, bool keep_tail)
    : pipe_(std::move(pipe)), log_(std::move(log)), keep_tail_(keep_tail) {
  set_nonblocking(pipe_.get());
}

bool rank_stream::read_some(std::size_t most, const line_splitter::receiver& line) {
  const line_splitter::receiver receive = [&](std::string_view text, bool cut) {
    keep(text);
    line(text, cut);
  };
  std::array<char, 64 * 1024>& buffer = read_buffer();
  bool any = false;
  std::size_t total = 0;
  while (open() && total < most) {
    const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      close(line);
      return false;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    log(bytes);
    lines_.feed(bytes, receive);
    total += bytes.size();
    any = true;
  }
  return any;
}

void rank_stream::close(const line_splitter::receiver& line) {
  lines_.finish([&](std::string_view text, bool cut) {
    keep(text);
    line(text, cut);
  });
  pipe_.reset();
  log_.reset();
}

void rank_stream::keep(std::string_view line) {
  if (!keep_tail_) return;
  if (tail_.size() == tail_lines) tail_.pop_front();
  tail_.emplace_back(line.substr(0, longest_tail_line));
}

void rank_stream::log(std::string_view bytes) {
  while (log_ && !bytes.empty()) {
    const ssize_t put = ::write(log_.get(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      log_error_ = errno;
      log_.reset();
      return;
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void read_status(rank_process& process, int ranks) {
  const std::string expected = "joined " + std::to_string(process.rank) + " " + std::to_string(ranks);
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(process.status.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    process.status.reset();
    return;
  }
  for (const char each : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
    if (each == '\n') {
      if (process.status_line == expected) process.joined = true;
      process.status_line.clear();
    } else if (process.status_line.size() < longest_status_line) {
      process.status_line += each;
    }
  }
}

std::string signal_name(int number) {
  if (const char* name = ::sigabbrev_np(number)) return std::string("SIG") + name;
  return "signal " + std::to_string(number);
}

std::string ending_text(int wait_status) {
  if (WIFEXITED(wait_status)) return "exit code " + std::to_string(WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  std::string text = signal_name(number);
  if (const char* words = ::sigdescr_np(number)) text += std::string(" (") + words + ")";
  if (WCOREDUMP(wait_status)) text += ", core dumped";
  return text;
}

int ending_code(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : exit_code::signal_base + WTERMSIG(wait_status);
}

std::string process_state(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // The name of the program stands in parentheses before the state, and may contain any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return "in an unknown state";
  switch (text[name_end + 2]) {
    case 'R': return "running";
    case 'S': return "sleeping";
    case 'D': return "waiting for a device (state D)";
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    case 'Z': return "ended";
    default: return std::string("in state ") + text[name_end + 2];
  }
}

}  // namespace cohort::tool
