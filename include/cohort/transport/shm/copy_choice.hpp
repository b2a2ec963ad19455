// SPDX-License-Identifier: BSL-1.0
// How a long message gets from one rank of a host to another: copied twice, through a ring that both see; or once, by the
// kernel, by the receiver alone or by both ends, each a share. Which is faster depends on how far the two cores are from
// each other, whether they are one core's two halves, and what else they do: so it is measured, of each, between each two.
#pragma once

#include <cohort/detail/trials.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace cohort::transport {

enum class copying : unsigned char { through_ring, single_copy, by_both };

class copy_choice {
 public:
  /// The ways there are, from the first to be tried: a program that makes few calls takes no other, and what else could carry a
  /// call out, as a window does, is held against it.
  static constexpr std::array ways{copying::single_copy, copying::by_both, copying::through_ring};
  /// So many messages in a row are a trial. A long one takes longer than what is unsettled at first, and there may never be many.
  [[nodiscard]] static constexpr unsigned trial(std::uint64_t bytes) noexcept { return bytes < long_bytes ? 12 : 4; }
  [[nodiscard]] static constexpr unsigned unsettled(std::uint64_t bytes) noexcept { return bytes < long_bytes ? 4 : 1; }
  static constexpr unsigned look_again = 512;
  /// Of short ones there are soon so many.
  static constexpr unsigned look_rarely = 8 * look_again;
  static constexpr std::uint64_t long_bytes = std::uint64_t{1} << 20;
  /// So many messages pass before one way has been settled on.
  [[nodiscard]] static constexpr unsigned settling(std::uint64_t bytes) noexcept {
    return static_cast<unsigned>(ways.size()) * trial(bytes);
  }

  copy_choice() = default;
  /// Nothing is measured where the caller has decided.
  explicit copy_choice(std::optional<copying> always) noexcept : always_(always) {}

  /// Whether any may be copied once: what can only be sent again need not be offered.
  [[nodiscard]] bool may_be_once() const noexcept { return always_ != copying::through_ring; }
  /// What the next message of so many bytes is to be moved by.
  [[nodiscard]] copying next(std::uint64_t bytes) noexcept {
    return always_ ? *always_ : ways[trials_of(bytes).next(plan(bytes))];
  }

  /// A message of so many bytes has been moved, or what there was to be moved of it.
  ///
  /// Needs: bytes > 0
  void took(copying how, std::uint64_t bytes, std::chrono::nanoseconds time) noexcept {
    if (always_) return;
    const auto way = static_cast<std::size_t>(std::find(ways.begin(), ways.end(), how) - ways.begin());
    const float each = static_cast<float>(std::max<std::int64_t>(time.count(), 1)) / static_cast<float>(bytes);
    trials_of(bytes).took(way, each, plan(bytes));
  }

 private:
  using trials = cohort::detail::trials<ways.size()>;
  static constexpr int shortest = 17;  // in bits: everything below 128 KiB is alike
  static constexpr std::size_t lengths = 10;

  [[nodiscard]] static constexpr cohort::detail::trial_plan plan(std::uint64_t bytes) noexcept {
    // What two ranks find of short ones that follow each other differs from one to the next by more than the ways do.
    if (bytes < long_bytes) {
      return {.trial = trial(bytes),
              .unsettled = unsettled(bytes),
              .look_again = look_again,
              .look_rarely = look_rarely,
              .memory = 32};
    }
    return {.trial = trial(bytes), .unsettled = unsettled(bytes), .look_again = look_again, .look_rarely = look_again};
  }
  /// Of messages of about one length: what fits into a cache is another matter than what does not.
  [[nodiscard]] trials& trials_of(std::uint64_t bytes) noexcept {
    const int bits = std::clamp(static_cast<int>(std::bit_width(bytes)) - shortest, 0, static_cast<int>(lengths) - 1);
    return trials_[static_cast<std::size_t>(bits)];
  }

  std::optional<copying> always_{};
  std::array<trials, lengths> trials_{};
};

}  // namespace cohort::transport
