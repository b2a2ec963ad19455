// SPDX-License-Identifier: BSL-1.0
// Whether it pays to look for a while at what a rank on another core may be about to write, where this core could be offered to
// others instead. Used by shm/window.hpp.
#pragma once

#include <algorithm>

namespace cohort::transport {

/// Such looks pay when many of them do: the cores keep in step then, which one look by itself does not bring about. Beside somebody
/// who works on one of the cores hardly any does. So they are made until too many have been in vain, and a few are tried again
/// after a long time.
class paying_look {
 public:
  static constexpr unsigned rest = 512;  ///< calls without a look, once they have not paid
  static constexpr int tries = 16;       ///< looks in vain after those

  [[nodiscard]] bool worth_it() noexcept {
    if (credit_ > 0) return true;
    if (++rested_ < rest) return false;
    rested_ = 0;
    credit_ = tries;
    return true;
  }
  void came(bool in_time) noexcept { credit_ = std::min(credit_ + (in_time ? 4 : -1), most_credit); }

 private:
  static constexpr int most_credit = 64;
  int credit_ = most_credit;
  unsigned rested_ = 0;
};

}  // namespace cohort::transport
