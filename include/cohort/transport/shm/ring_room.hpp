// SPDX-License-Identifier: BSL-1.0
// Where the writer of a ring puts what it writes. While its reader keeps up short messages use the same memory again and again, which
// then stays in the first-level caches of both cores; where lines pass slowly between these (detail/round_room.hpp) only the
// shortest do, and longer ones go through all of the room. What is not read is left where it is. Used by shm/ring.hpp.
#pragma once

#include <cohort/detail/round_room.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace cohort::transport {

/// Positions count bytes and only grow; places are where these are in the room. What has not been read is a few runs of bytes
/// behind each other.
class ring_room {
 public:
  static constexpr std::size_t capacity = std::size_t{256} << 10;
  /// What short messages use of it while their reader keeps up: with the entries of the ring and with what is sent, less than a
  /// first-level cache. Longer ones use two or three times as much: one place is read while the next is written.
  static constexpr std::size_t lap = std::size_t{6} << 10;
  /// Where lines pass slowly from one first-level cache to another, from here on messages go on through all of the room while their
  /// reader is behind; those longer than a lap also when it has read all.
  static constexpr std::size_t shortest_round = std::size_t{2} << 10;

  /// `rounds`: whether they do
  explicit ring_room(bool rounds = cohort::detail::first_levels_pass_slowly()) noexcept : rounds_(rounds) {}

  struct place {
    std::size_t start;
    std::size_t bytes;
  };

  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  /// What is known to have been read.
  [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
  /// Where the next bytes go if they fit.
  [[nodiscard]] std::size_t next() const noexcept { return next_; }

  /// Whether there is room for so many behind the last.
  [[nodiscard]] bool follow(std::size_t bytes) const noexcept { return bytes <= limit_ - next_; }
  /// The same within a lap. At its end the reader may have come so far that it begins again, which only its own word tells.
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept { return follow(bytes) && !ends_lap(next_, bytes); }
  /// The reader says how far it has read.
  void note_read(std::uint64_t position) noexcept {
    // It cannot have read what has not been written, nor less than it had: a position that says so is a peer's mistake.
    if (written_ - position > written_ - read_) return;
    read_ = position;
    while (count_ > 1 && written_ - runs_[1].first >= written_ - read_) {
      std::copy(runs_.begin() + 1, runs_.begin() + count_, runs_.begin());
      --count_;
    }
    if (read_ == written_) {
      count_ = 1;
      if (!rounds_ || last_ <= lap || next_ > capacity / 2) next_ = 0;
      runs_[0] = {written_, next_};
    }
    limit_ = limit_from(next_);
  }
  /// Where so many bytes go, or as many of them as there is room for in a row: to be written there, and to be counted by
  /// `advance`. Asked when what has been read is known.
  [[nodiscard]] place find(std::size_t wanted) noexcept {
    if (read_ == written_ && wanted > limit_ - next_) return begin(0, std::min(wanted, capacity));
    const std::size_t front = unread_from();
    const bool may_begin = count_ < most_runs;
    const bool again = !rounds_ || wanted < shortest_round;
    if (may_begin && again && wanted <= front && ends_lap(next_, wanted)) return begin(0, wanted);
    if (wanted <= limit_ - next_) return {next_, wanted};
    if (may_begin && wanted <= front) return begin(0, wanted);
    const std::size_t over = limit_ < capacity ? behind(limit_) : capacity;
    const std::size_t room_over = limit_from(over) - over;
    if (may_begin && wanted <= room_over) return begin(over, wanted);
    if (next_ < limit_) return {next_, limit_ - next_};
    if (may_begin && front > 0 && front >= room_over) return begin(0, front);
    if (may_begin && room_over > 0) return begin(over, room_over);
    return {next_, 0};
  }
  void advance(std::size_t bytes) noexcept {
    written_ += bytes;
    next_ += bytes;
    last_ = bytes;
  }
  /// How many bytes `find` gives places for, at so many calls.
  ///
  /// Result: of more than two calls those of two
  [[nodiscard]] std::size_t room(int calls) const noexcept {
    if (read_ == written_) return capacity;
    const std::size_t here = limit_ - next_;
    if (count_ == most_runs) return here;
    const std::size_t front = unread_from();
    const std::size_t over = limit_ < capacity ? behind(limit_) : capacity;
    const std::size_t room_over = limit_from(over) - over;
    if (calls < 2) return std::max({here, front, room_over});
    return here + std::max(front <= next_ ? front : 0, room_over);
  }

 private:
  static constexpr std::size_t most_runs = 4;
  /// Of bytes that stand behind each other; it goes on to the position of the next one's first.
  struct run {
    std::uint64_t first;
    std::size_t start;
  };

  /// How far messages of so many bytes go before they begin again; 0: through all of the room.
  [[nodiscard]] static constexpr std::size_t lap_of(std::size_t bytes) noexcept {
    return bytes <= lap / 2 ? lap : bytes <= lap ? 2 * lap : bytes <= lap * 3 / 2 ? 3 * lap : 0;
  }
  [[nodiscard]] static bool ends_lap(std::size_t start, std::size_t bytes) noexcept {
    const std::size_t whole = lap_of(bytes);
    if (whole == 0 || start == 0) return false;
    return start % whole == 0 || start % whole + bytes > whole;
  }
  [[nodiscard]] std::size_t start_of(std::size_t i) const noexcept {
    return runs_[i].start + (i == 0 ? static_cast<std::size_t>(read_ - runs_[0].first) : 0);
  }
  [[nodiscard]] std::size_t end_of(std::size_t i) const noexcept {
    const std::uint64_t behind = i + 1 < count_ ? runs_[i + 1].first : written_;
    return runs_[i].start + static_cast<std::size_t>(behind - runs_[i].first);
  }
  /// The first place that has not been read.
  [[nodiscard]] std::size_t unread_from() const noexcept {
    std::size_t least = capacity;
    for (std::size_t i = 0; i < count_; ++i) least = std::min(least, start_of(i));
    return least;
  }
  /// The first place from there on that has not been read.
  [[nodiscard]] std::size_t limit_from(std::size_t start) const noexcept {
    std::size_t least = capacity;
    for (std::size_t i = 0; i < count_; ++i) {
      if (start_of(i) >= start && start_of(i) < end_of(i)) least = std::min(least, start_of(i));
    }
    return least;
  }
  /// The place behind the run that begins there.
  [[nodiscard]] std::size_t behind(std::size_t start) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (start_of(i) == start && start < end_of(i)) return end_of(i);
    }
    return capacity;
  }
  [[nodiscard]] place begin(std::size_t start, std::size_t bytes) noexcept {
    if (runs_[count_ - 1].first == written_) --count_;  // nothing has been written there
    runs_[count_++] = {written_, start};
    next_ = start;
    limit_ = limit_from(start);
    return {start, bytes};
  }

  std::uint64_t written_ = 0;
  std::uint64_t read_ = 0;
  std::size_t next_ = 0;
  std::size_t limit_ = capacity;  ///< the first place from the next one on that has not been read
  std::size_t last_ = 0;          ///< bytes that were written in a row
  std::size_t count_ = 1;
  std::array<run, most_runs> runs_{};
  bool rounds_;
};

}  // namespace cohort::transport
