// SPDX-License-Identifier: BSL-1.0
// The core that a rank goes back to while it waits, where ranks share fewer cores. Used by patience.hpp.
#pragma once

#include <cohort/detail/other_core.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>

namespace cohort::transport {

/// A scheduler may leave three of four ranks on one of two cores for seconds, as who yields has just run. But where somebody
/// works on a rank's core, the scheduler knows better: then the rank stays away, longer each time.
class home_core {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::nanoseconds between_returns = std::chrono::milliseconds{1};
  static constexpr std::chrono::nanoseconds first_absence = std::chrono::milliseconds{32};
  static constexpr std::chrono::nanoseconds longest_absence = std::chrono::seconds{2};
  /// Where it may have been another rank that worked.
  static constexpr std::chrono::nanoseconds longest_if_unsure = std::chrono::milliseconds{512};

  home_core() = default;
  explicit home_core(int core) noexcept : core_(core) {}

  /// This thread has offered its core, and has it again. Needs: as `returns`
  void look(clock::time_point now, bool somebody_worked, bool sure) noexcept {
    if (core_ >= 0 && returns(now, ::sched_getcpu() == core_, somebody_worked, sure)) cohort::detail::go_to_core(core_);
  }
  /// Whether it is time to go back.
  ///
  /// Needs: `sure`: whether ranks would have shown that it was they who worked
  [[nodiscard]] bool returns(clock::time_point now, bool at_home, bool somebody_worked, bool sure) noexcept {
    if (at_home && somebody_worked) {
      const std::chrono::nanoseconds longest = sure ? longest_absence : longest_if_unsure;
      const bool again = absence_ > absence_.zero() && now - busy_ < 2 * longest;
      absence_ = again ? std::min(2 * absence_, longest) : first_absence;
      busy_ = now;
      may_return_ = now + absence_;
    }
    if (at_home || now < may_return_) return false;
    may_return_ = now + between_returns;
    return true;
  }

 private:
  int core_ = -1;
  clock::time_point may_return_{};
  clock::time_point busy_{};  ///< when somebody else worked there
  std::chrono::nanoseconds absence_{};
};

}  // namespace cohort::transport
