// SPDX-License-Identifier: BSL-1.0
// Whether messages that are short enough to be sent before they are asked for had better be offered all the same. Sent at once they
// are copied twice, by both ends at a time; offered, as copy_choice.hpp says. Of the longest of them either may be faster, by a third,
// as the memory is. The receiver finds out, and the sender looks at what it has said.
#pragma once

#include <cohort/detail/trials.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace cohort::transport {

class early_choice {
 public:
  using clock = std::chrono::steady_clock;
  /// Up to this length they are sent at once, which is faster, or as fast, everywhere.
  static constexpr std::uint64_t never_offered = std::uint64_t{48} << 10;
  /// So many count as one: what a single one takes says little.
  static constexpr unsigned together = 16;
  /// So many of these are a trial, and say nothing at first: those that were under way when the sender heard of it, and those for which
  /// it is found out how they are copied.
  static constexpr unsigned trial = 8;
  static constexpr unsigned unsettled = 4;
  /// What takes so many times as long from the one before it as it took to come does not count: the ends do other things.
  static constexpr int longest_pause = 8;

  /// A message that a receive had awaited has come, of which the first was seen at `since`, or that was asked for then. It counts from
  /// the one before it: what its sender does before anything can be seen of it differs too. It counts for what was wanted, however it
  /// came: of many at a time those for which there is no room come offered.
  ///
  /// Needs:  bytes > never_offered
  /// Result: whether the next ones are wanted offered
  [[nodiscard]] bool came(std::uint64_t bytes, clock::time_point since, clock::time_point now) noexcept {
    const auto took = now - std::exchange(last_, now);
    if (took <= longest_pause * (now - since)) {
      run_.took += took;
      run_.bytes += bytes;
      if (++run_.messages == together) count();
    }
    return present_ == offered;
  }

 private:
  enum : std::size_t { early, offered, ways };
  struct run {
    clock::duration took{};
    std::uint64_t bytes = 0;
    unsigned messages = 0;
  };
  /// Messages that came one at a time, each answered, may come many at a time now.
  static constexpr float another_matter = 1.5F;
  static constexpr cohort::detail::trial_plan plan{
      .trial = trial, .unsettled = unsettled, .look_again = 64, .look_rarely = 512, .another_matter = another_matter};

  void count() noexcept {
    const run all = std::exchange(run_, {});
    trials_.took(present_, static_cast<float>(all.took.count()) / static_cast<float>(all.bytes), plan);
    present_ = trials_.next(plan);
  }

  cohort::detail::trials<ways> trials_{};
  std::size_t present_ = early;
  clock::time_point last_{};
  run run_{};
};

}  // namespace cohort::transport
