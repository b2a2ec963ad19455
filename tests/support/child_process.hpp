// SPDX-License-Identifier: BSL-1.0
// One forked process that runs a function, can be killed, and is reaped whatever happens to the test.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>

namespace harness {

/// Needs: no other thread runs in the calling process, so that the child is whole
class child_process {
 public:
  static constexpr int exit_exception = 99;

  /// `body()` returns the exit code.
  template <class Body>
  explicit child_process(const Body& body) {
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("child_process: fork failed");
    if (pid_ > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    int code = exit_exception;
    try {
      code = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child process %ld: %s\n", static_cast<long>(::getpid()), e.what());
    }
    std::fflush(nullptr);
    ::_exit(code);
  }
  child_process(child_process&& other) noexcept : pid_(other.pid_) { other.pid_ = -1; }
  child_process& operator=(child_process&&) = delete;
  ~child_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void send_signal(int signal) const { ::kill(pid_, signal); }
  [[nodiscard]] long pid() const noexcept { return static_cast<long>(pid_); }

  /// The exit code, 128 and the signal's number when a signal ended it, or -1 when it had to be killed because it ran
  /// longer than `limit`.
  [[nodiscard]] int wait(std::chrono::seconds limit = std::chrono::seconds(60)) {
    const auto last = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > last) return -1;  // the destructor kills it
      const timespec nap{0, 1000000};                          // waitpid has no deadline of its own
      ::nanosleep(&nap, nullptr);
    }
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace harness
