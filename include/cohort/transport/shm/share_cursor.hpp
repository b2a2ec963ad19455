// SPDX-License-Identifier: BSL-1.0
// Who copies what of a message that both of its ends copy, in the number that both see: the receiver takes shares on from the front,
// the sender from the end. So of several messages between the same buffers each end writes the same bytes again, which its core
// still has. Used by impl/peer_shares.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cohort::transport {

/// Of a message of so many bytes. What stands above the lowest `bits` of the number is left alone.
class share_cursor {
 public:
  explicit constexpr share_cursor(std::uint64_t bytes) noexcept : bytes_(bytes) {
    while ((bytes_ + unit_ - 1) / unit_ >= most) unit_ *= 2;
    units_ = (bytes_ + unit_ - 1) / unit_;
  }

  /// What an end takes on, by putting `word` in the place of the number that it has seen; no bytes: nothing is left.
  struct share {
    std::uint64_t word = 0;
    std::uint64_t first = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] constexpr share from_front(std::uint64_t seen) const noexcept {
    const std::uint64_t n = next(seen);
    const std::uint64_t first = start_of(front(seen));
    return {seen + (n << count_bits), first, n == 0 ? 0 : start_of(front(seen) + n) - first};
  }
  [[nodiscard]] constexpr share from_end(std::uint64_t seen) const noexcept {
    const std::uint64_t n = next(seen);
    if (n == 0) return {seen, 0, 0};
    const std::uint64_t end = units_ - back(seen);
    return {seen + n, start_of(end - n), start_of(end) - start_of(end - n)};
  }
  /// How many bytes the sender has taken on.
  [[nodiscard]] constexpr std::uint64_t of_sender(std::uint64_t seen) const noexcept {
    return bytes_ - start_of(units_ - std::min(back(seen), units_));
  }

  /// Of these, one half counts what is taken from the front, the lower one what is taken from the end.
  static constexpr unsigned bits = 44;

 private:
  static constexpr unsigned count_bits = bits / 2;
  static constexpr std::uint64_t most = (std::uint64_t{1} << count_bits) - 1;
  static constexpr std::uint64_t page = 4096;

  [[nodiscard]] static constexpr std::uint64_t front(std::uint64_t word) noexcept { return word >> count_bits & most; }
  [[nodiscard]] static constexpr std::uint64_t back(std::uint64_t word) noexcept { return word & most; }
  [[nodiscard]] constexpr std::uint64_t start_of(std::uint64_t unit) const noexcept {
    return std::min(unit * unit_, bytes_);
  }
  /// How many units of what is left are taken on at a time: halves, so that both end together.
  [[nodiscard]] constexpr std::uint64_t next(std::uint64_t word) const noexcept {
    constexpr std::uint64_t least_bytes = std::uint64_t{32} << 10;
    constexpr std::uint64_t most_bytes = std::uint64_t{512} << 10;
    const std::uint64_t taken = front(word) + back(word);
    if (taken >= units_) return 0;
    const std::uint64_t left = units_ - taken;
    return std::clamp<std::uint64_t>(std::clamp(left * unit_ / 2, least_bytes, most_bytes) / unit_, 1, left);
  }

  std::uint64_t bytes_;
  std::uint64_t unit_ = page;
  std::uint64_t units_ = 0;
};

}  // namespace cohort::transport
