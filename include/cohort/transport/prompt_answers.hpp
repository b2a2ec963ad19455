// SPDX-License-Identifier: BSL-1.0
// Whether a message is likely to come as soon as it is asked for. Used by tcp.hpp and shm/stream.hpp, for each
// rank that a socket or memory leads to.
#pragma once

#include <algorithm>

namespace cohort::transport {

/// Remembers whether the last messages were worth looking for where their receive was called, before anything was made that
/// can wait. Where they were not, it has one of them looked for now and then, as that may have changed.
class prompt_answers {
 public:
  static constexpr unsigned asked_between = 64;

  [[nodiscard]] bool expected() noexcept { return worth_ > 0 || ++asked_ % asked_between == 0; }
  void came(bool soon) noexcept { worth_ = std::clamp(worth_ + (soon ? 1 : -1), 0, most_worth); }

 private:
  static constexpr int most_worth = 4;
  int worth_ = 0;
  unsigned asked_ = 0;
};

}  // namespace cohort::transport
