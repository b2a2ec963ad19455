// SPDX-License-Identifier: BSL-1.0
// Turns this process into one that can look after others: signals become readable, orphans of ranks become its
// children, and there are descriptors enough. Made once, before the first rank starts.
#pragma once

#include "../unique_fd.hpp"
#include "spawn.hpp"

#include <sys/types.h>
#include <vector>

namespace cohort::tool {

/// Opens /dev/null where descriptor 0, 1 or 2 is closed, so that no pipe of ours gets that number.
void ensure_standard_descriptors();

class host_setup {
 public:
  /// `signals` are those that `cohort run` passes on; all others do here what they usually do.
  ///
  /// Errors: std::system_error
  explicit host_setup(const std::vector<int>& signals);

  /// Readable (signalfd_siginfo) when a signal has come that `cohort run` handles.
  [[nodiscard]] int signals() const noexcept { return signals_.get(); }
  [[nodiscard]] const inherited_state& inherited() const noexcept { return inherited_; }
  /// The process groups of what ranks that are gone have left behind; see groups_of_children.
  [[nodiscard]] std::vector<pid_t> groups_left() const;

 private:
  inherited_state inherited_{};
  unique_fd signals_;
  std::vector<pid_t> earlier_groups_;  // of children from before, of a shell that became this process by exec
};

}  // namespace cohort::tool
