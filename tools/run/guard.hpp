// SPDX-License-Identifier: BSL-1.0
// A process that outlives this one by a moment: when this one is gone, even by SIGKILL, it kills what the ranks
// started. The kernel ends the ranks themselves (PR_SET_PDEATHSIG), but not their children.
#pragma once

#include "../unique_fd.hpp"

#include <sys/types.h>

namespace cohort::tool {

class guard {
 public:
  /// Errors: std::system_error when the system refuses the process or the pipe.
  guard();
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;
  ~guard();

  /// Where a rank writes the number of its process group (a pid_t) before its program starts.
  [[nodiscard]] int registry() const noexcept { return registry_.get(); }
  /// The group is empty: its number may soon belong to strangers.
  void forget(pid_t group) noexcept;

 private:
  void send(pid_t message) noexcept;

  unique_fd registry_;
  pid_t pid_ = -1;
};

}  // namespace cohort::tool
