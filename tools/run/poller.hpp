// SPDX-License-Identifier: BSL-1.0
// Waits for descriptors and hands them out in the order in which they became ready. For the ends of processes (pidfds)
// that order is the order of death, which is how the supervisor knows who failed first.
#pragma once

#include "../unique_fd.hpp"

#include <sys/epoll.h>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace cohort::tool {

enum class source : std::uint32_t { process, out, err, status, signals, console_out, console_err };

struct ready_source {
  source kind;
  int rank;
};

class poller {
 public:
  poller();
  /// `for_writing`: wait until it takes output; else until there is something to read.
  void add(int fd, source kind, int rank, bool for_writing = false);
  void remove(int fd) noexcept;
  /// Waits until something is ready or `deadline` has passed; without a deadline for as long as it takes.
  std::vector<ready_source> wait(std::optional<std::chrono::steady_clock::time_point> deadline);

 private:
  unique_fd epoll_;
};

}  // namespace cohort::tool
