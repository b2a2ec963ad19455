// SPDX-License-Identifier: BSL-1.0
// Whether this process is the one that something was made in, or was forked from it since. What holds connections asks
// before every use: sockets and threads are not the child's.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace cohort::detail {

inline constinit std::atomic<unsigned> forks_so_far{0};

/// The process in which it was made. Needs: a fork by fork(), not by a bare system call
///
/// Cost: asking is a load and a comparison
class home_process {
 public:
  home_process() noexcept {
    [[maybe_unused]] static const int watched =
        ::pthread_atfork(nullptr, nullptr, [] { forks_so_far.fetch_add(1, std::memory_order_relaxed); });
    forks_ = forks_so_far.load(std::memory_order_relaxed);
    pid_ = static_cast<long>(::getpid());
  }
  /// This process is a child of it, or a child's child.
  [[nodiscard]] bool left() const noexcept { return forks_so_far.load(std::memory_order_relaxed) != forks_; }
  [[nodiscard]] long pid() const noexcept { return pid_; }

 private:
  unsigned forks_ = 0;
  long pid_ = 0;
};

}  // namespace cohort::detail
