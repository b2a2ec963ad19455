// SPDX-License-Identifier: BSL-1.0
// Runs a function in n forked processes, each with the variables that torchrun would set, and tells how every one of
// them ended and what it printed. For tests/process; it knows nothing of the library, so that it cannot share a bug.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "free_port.hpp"
#include "rank_body.hpp"
#include "rank_result.hpp"

namespace harness {

/// When rank `printed_by` has printed the whole line `line`, `signal` is sent to rank `target`.
struct signal_rule {
  int printed_by;
  std::string line;
  int target;
  int signal;
};
[[nodiscard]] inline signal_rule kill_when(int rank, std::string line) {
  return {rank, std::move(line), rank, SIGKILL};
}
[[nodiscard]] inline signal_rule stop_when(int rank, std::string line) {
  return {rank, std::move(line), rank, SIGSTOP};
}

struct rank_options {
  std::chrono::milliseconds deadline = std::chrono::seconds(100);  ///< for all ranks together: guards against a hang
  std::vector<signal_rule> signals{};                              ///< each is carried out once
  variables environment{};                                         ///< over the launcher's
};

namespace detail {

using clock = std::chrono::steady_clock;

[[noreturn]] inline void fail_system(const char* call) {
  throw std::runtime_error(std::string("run_ranks: ") + call + ": " + std::strerror(errno));
}

/// One stream of one rank, as the parent reads it.
struct capture {
  int fd = -1;
  std::size_t seen = 0;  ///< bytes whose lines have been looked at
};

struct child {
  pid_t pid = -1;  ///< -1: ended and waited for
  clock::time_point started{};
  bool stopped = false;
  std::array<capture, 2> streams{};
  rank_result result{};

  [[nodiscard]] bool alive() const { return pid > 0; }
  std::string& text(std::size_t stream) { return stream == 0 ? result.out : result.err; }
};

/// What the kernel says a process is at: "state R (running)", and where in the kernel it sleeps.
inline std::string kernel_state(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::string line;
  std::string state = "state unknown";
  for (std::ifstream status(folder + "/status"); std::getline(status, line);) {
    if (line.rfind("State:", 0) == 0) state = "state " + line.substr(line.find_first_not_of("\t ", 6));
  }
  std::ifstream wait(folder + "/wchan");
  if (std::getline(wait, line) && line != "0" && !line.empty()) state += " in " + line;
  return state;
}

class rank_set {
 public:
  explicit rank_set(const rank_options& options) : options_(options), pending_(options.signals) {}
  rank_set(const rank_set&) = delete;
  rank_set& operator=(const rank_set&) = delete;
  ~rank_set() {
    kill_all();
    for (child& each : children_) {
      if (each.alive()) ::waitpid(each.pid, nullptr, 0);
      for (const capture& stream : each.streams) {
        if (stream.fd >= 0) ::close(stream.fd);
      }
    }
  }

  template <class Body>
  void start(int n, Body& body) {
    const int port = free_port();
    std::fflush(nullptr);  // or every child would print what the parent has not yet
    const pid_t parent = ::getpid();
    for (int rank = 0; rank < n; ++rank) {
      std::array<std::array<int, 2>, 2> pipes{};
      child next;
      next.result.rank = rank;
      for (std::size_t stream = 0; stream < 2; ++stream) {
        if (::pipe2(pipes[stream].data(), O_CLOEXEC) != 0) fail_system("pipe2");
        next.streams[stream].fd = pipes[stream][0];
        ::fcntl(pipes[stream][0], F_SETFL, O_NONBLOCK);
      }
      next.started = clock::now();
      next.pid = ::fork();
      if (next.pid < 0) fail_system("fork");
      if (next.pid == 0) {
        become_rank(parent, pipes[0][1], pipes[1][1]);
        set_variables(rank, n, port, options_.environment);
        for (const auto& stream : pipes) {
          ::close(stream[0]);
          ::close(stream[1]);
        }
        for (const child& earlier : children_) {
          for (const capture& stream : earlier.streams) ::close(stream.fd);
        }
        rank_main(body, rank);
      }
      ::setpgid(next.pid, next.pid);
      for (const auto& stream : pipes) ::close(stream[1]);
      children_.push_back(std::move(next));
    }
  }

  std::vector<rank_result> wait() {
    const clock::time_point deadline = clock::now() + options_.deadline;
    for (;;) {
      poll_streams();
      for (child& each : children_) reap(each);
      const auto is_alive = [](const child& each) { return each.alive(); };
      if (std::none_of(children_.begin(), children_.end(), is_alive)) break;
      if (std::all_of(children_.begin(), children_.end(), [](const child& c) { return !c.alive() || c.stopped; })) {
        for (child& each : children_) {
          each.result.left_stopped = each.alive();
          each.stopped = false;
        }
        kill_all();
      }
      if (clock::now() > deadline) fail_at_deadline();
    }
    std::vector<rank_result> results;
    for (child& each : children_) results.push_back(std::move(each.result));
    if (!pending_.empty()) {
      const signal_rule& rule = pending_.front();
      throw ranks_failed("run_ranks: rank " + std::to_string(rule.printed_by) + " never printed \"" + rule.line +
                         "\", so that rank " + std::to_string(rule.target) + " was not sent " +
                         ::strsignal(rule.signal) + "\n" + describe(results));
    }
    return results;
  }

 private:
  void kill_all() {
    for (const child& each : children_) {
      if (each.alive()) ::kill(-each.pid, SIGKILL);  // the group: with all that the rank has started
    }
  }

  [[noreturn]] void fail_at_deadline() {
    std::vector<std::string> states;
    for (const child& each : children_) {
      states.push_back(!each.alive() ? "" : "still alive, " + kernel_state(each.pid) + ",");
    }
    kill_all();
    std::string text = "run_ranks: the deadline of " + std::to_string(options_.deadline.count()) + " ms has passed\n";
    for (std::size_t i = 0; i < children_.size(); ++i) {
      child& each = children_[i];
      if (each.alive()) each.result.elapsed = clock::now() - each.started;
      drain(each);
      text += describe(each.result, states[i]);
    }
    throw ranks_failed(text);
  }

  // Pipes wake this loop; the end of a rank that holds no pipe is found at the next turn of 10 ms.
  void poll_streams() {
    std::vector<pollfd> wanted;
    for (const child& each : children_) {
      for (const capture& stream : each.streams) {
        if (stream.fd >= 0) wanted.push_back({stream.fd, POLLIN, 0});
      }
    }
    ::poll(wanted.data(), wanted.size(), 10);
    for (child& each : children_) drain(each);
  }

  void drain(child& each) {
    for (std::size_t stream = 0; stream < 2; ++stream) {
      std::array<char, 4096> block{};
      int& fd = each.streams[stream].fd;
      while (fd >= 0) {
        const ssize_t got = ::read(fd, block.data(), block.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        if (got == 0) ::close(std::exchange(fd, -1));
        each.text(stream).append(block.data(), static_cast<std::size_t>(got));
      }
      apply_rules(each, stream);
    }
  }

  void apply_rules(child& each, std::size_t stream) {
    const std::string& text = each.text(stream);
    std::size_t& seen = each.streams[stream].seen;
    for (std::size_t end; (end = text.find('\n', seen)) != std::string::npos; seen = end + 1) {
      const std::string_view line(text.data() + seen, end - seen);
      for (std::size_t i = 0; i < pending_.size();) {
        if (pending_[i].printed_by != each.result.rank || pending_[i].line != line) {
          ++i;
          continue;
        }
        const child& target = children_.at(static_cast<std::size_t>(pending_[i].target));
        if (target.alive()) ::kill(target.pid, pending_[i].signal);
        pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }

  void reap(child& each) {
    int status = 0;
    while (each.alive() && ::waitpid(each.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == each.pid) {
      if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
        each.stopped = WIFSTOPPED(status);
        continue;
      }
      each.result.elapsed = clock::now() - each.started;
      each.result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      each.result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      each.pid = -1;
      drain(each);
    }
  }

  const rank_options& options_;
  std::vector<signal_rule> pending_;
  std::vector<child> children_{};
};

}  // namespace detail

/// Calls `body(rank)`, which returns an exit code, in n processes at once, and waits for all of them.
///
/// Result:  how each rank ended, in rank order; a rank that threw has exit code `exit_exception` and says why on err,
///          one that leaked (in an AddressSanitizer build) has `exit_leak`
/// Errors:  ranks_failed: some rank was alive at the deadline, or a line that `options.signals` names never came
/// Cancels: no rank outlives this call, nor the process that made it
template <class Body>
[[nodiscard]] std::vector<rank_result> run_ranks(int n, Body body, const rank_options& options = {}) {
  detail::rank_set ranks(options);
  ranks.start(n, body);
  return ranks.wait();
}

}  // namespace harness
