// SPDX-License-Identifier: BSL-1.0
// When to look first for what another core is about to write. Used by patience.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cohort::transport {

/// Who looks before a word is written takes its line away from the writer, which must get it back before it can write: the line goes
/// between the cores three times instead of once. So whoever is answered again and again lets as much time go by as the answers took
/// lately, and looks then.
///
/// One for each thing that is waited for again and again, where the other rank does not write until it has read what this one has
/// written: of two that write at once neither gains anything. Not for ranks that take turns on a core.
class first_look {
 public:
  static constexpr std::uint32_t longest = 1024;  ///< cycles: a third of a microsecond
  /// About so many cycles it was worth to wait lately.
  [[nodiscard]] std::uint32_t cycles() const noexcept { return steps_ >> fraction; }
  /// They go by, without a look at any memory.
  void wait() const noexcept {
    for (std::uint32_t i = cycles(); i > 0; --i) asm volatile("" : "+r"(i));
  }
  /// It was there, at the first look or not long after it. Each time that it was, the next wait is a little shorter, to learn whether
  /// it may be: about one look in six is in vain then.
  void came(bool at_once) noexcept {
    if (at_once) {
      steps_ -= steps_ / 128;
    } else {
      steps_ = std::min(most, steps_ + steps_ / 32 + (2U << fraction));
    }
  }

 private:
  static constexpr unsigned fraction = 8;
  static constexpr std::uint32_t most = longest << fraction;
  std::uint32_t steps_ = 0;
};

}  // namespace cohort::transport
