// SPDX-License-Identifier: BSL-1.0
// Whether short messages to one rank follow each other so closely that they had better leave together. Used by
// peer_connection.hpp, where they leave through a socket.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cohort::transport {

/// A burst: messages sent one soon after the other, between which this rank has looked for none. Ranks that answer each other
/// have no bursts.
class send_burst {
 public:
  using clock = std::chrono::steady_clock;

  /// What is longer costs more to copy than to send.
  static constexpr std::size_t longest_message = std::size_t{16} << 10;
  /// So many have left by themselves before one is part of a burst.
  static constexpr unsigned alone_first = 4;
  /// A few times what it costs to send one.
  static constexpr std::chrono::microseconds longest_gap{20};

  /// One more message leaves now.
  ///
  /// Needs:  `looks`: how often this rank has looked for messages until now
  /// Result: whether it is part of a burst
  [[nodiscard]] bool goes_on(std::uint64_t looks) noexcept {
    if (looks != looks_) {
      looks_ = looks;
      alone_ = 0;
    }
    // The clock is read for what may be a burst alone.
    if (++alone_ < alone_first) return false;
    alone_ = alone_first;
    const clock::time_point now = clock::now();
    const bool soon = now - last_ <= longest_gap;
    last_ = now;
    return soon;
  }

 private:
  std::uint64_t looks_ = 0;
  unsigned alone_ = 0;
  clock::time_point last_{};
};

}  // namespace cohort::transport
