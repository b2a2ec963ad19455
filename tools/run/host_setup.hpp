// SPDX-License-Identifier: BSL-1.0
// Turns this process into one that can look after others: signals become readable, orphans of ranks become its
// children, and there are descriptors enough. Made once, before the first rank starts.
#pragma once

#include "../unique_fd.hpp"
#include "spawn.hpp"

namespace cohort::tool {

/// Opens /dev/null where descriptor 0, 1 or 2 is closed, so that no pipe of ours gets that number.
void ensure_standard_descriptors();

class host_setup {
 public:
  /// Errors: std::system_error
  host_setup();

  /// Readable (signalfd_siginfo) when a signal has come that `cohort run` handles.
  [[nodiscard]] int signals() const noexcept { return signals_.get(); }
  [[nodiscard]] const inherited_state& inherited() const noexcept { return inherited_; }

 private:
  inherited_state inherited_{};
  unique_fd signals_;
};

}  // namespace cohort::tool
