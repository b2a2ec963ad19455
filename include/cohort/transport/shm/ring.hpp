// SPDX-License-Identifier: BSL-1.0
// Bytes in one direction between two processes: one writes, one reads, neither waits. Used by shm/stream.hpp.
#pragma once

#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/piece.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cohort::transport {

/// What stands before the bytes. Positions only grow; each has one writer.
///
/// The bytes of a short write stand in the ring, and beside the word that tells of them too: who waits for it gets both
/// with one line. They are of one write when the word is the same before and after they are read: each is written after
/// the word has said that there are none, and read before the word is read again.
struct ring_head {
  static constexpr std::size_t words = 7;
  static constexpr std::size_t beside = words * sizeof(std::uint64_t);
  alignas(128) std::atomic<std::uint64_t> written{0};  ///< a position, and how many bytes of it stand beside it
  std::atomic<std::uint64_t> last[words]{};
  std::atomic<std::uint32_t> full{0};  ///< the writer waits for room, and wants to be woken
  alignas(128) std::atomic<std::uint64_t> read{0};
  alignas(128) byte_stream::cursor cursors[byte_stream::cursors]{};  ///< of long messages in this direction

  static constexpr unsigned shift = 8;
  [[nodiscard]] static constexpr std::uint64_t word(std::uint64_t position, std::size_t bytes_beside) noexcept {
    return position << shift | bytes_beside;
  }
};

class ring {
 public:
  static constexpr std::size_t capacity = std::size_t{256} << 10;
  static constexpr std::size_t segment_bytes = shared_segment::page + capacity;
  static_assert(sizeof(ring_head) <= shared_segment::page);

  ring() = default;
  explicit ring(shared_segment memory) noexcept
      : memory_(std::move(memory)),
        head_(reinterpret_cast<ring_head*>(memory_.data())),
        bytes_(memory_.data() + shared_segment::page) {}

  [[nodiscard]] static ring create() {
    shared_segment s = shared_segment::create(segment_bytes);
    ::new (s.data()) ring_head;
    return ring(std::move(s));
  }
  explicit operator bool() const noexcept { return head_ != nullptr; }
  void close_descriptor() noexcept { memory_.close_descriptor(); }
  [[nodiscard]] const shared_segment& memory() const noexcept { return memory_; }
  [[nodiscard]] ring_head& head() const noexcept { return *head_; }

  struct outcome {
    std::size_t bytes;  ///< that were written
    bool all;
  };
  /// Writer: as much as there is room for.
  outcome write(std::span<const piece> from) noexcept {
    std::size_t wanted = 0;
    std::size_t odd = 0;  // not 0 where one begins within a word
    for (const piece& p : from) {
      odd |= wanted;
      wanted += p.bytes;
    }
    const std::uint64_t at = written_;
    std::size_t room = capacity - static_cast<std::size_t>(at - read_);
    if (room < wanted) {
      read_ = bounded(head_->read.load(std::memory_order_acquire), at);
      room = capacity - static_cast<std::size_t>(at - read_);
    }
    const std::size_t start = static_cast<std::size_t>(at % capacity);
    if (wanted <= ring_head::beside && std::min(room, capacity - start) >= ring_head::beside && odd % word_bytes == 0) {
      if (wanted > 0) write_beside(start, from, wanted);
      return {wanted, true};
    }
    if (wanted <= std::min({room, part_bytes, capacity - start})) {  // in one go: most messages
      std::byte* to = bytes_ + start;
      for (const piece& p : from) {
        std::memcpy(to, p.data, p.bytes);
        to += p.bytes;
      }
      if (wanted > 0) publish(at + wanted);
      return {wanted, true};
    }
    std::size_t done = 0;
    std::size_t told = 0;
    for (const piece& p : from) {
      std::size_t left = std::min(p.bytes, room - done);
      const std::byte* data = p.data;
      while (left > 0) {
        const std::size_t offset = static_cast<std::size_t>((at + done) % capacity);
        // The reader begins with the first of a long run while the rest is written.
        const std::size_t part = std::min({left, capacity - offset, part_bytes});
        std::memcpy(bytes_ + offset, data, part);
        data += part;
        left -= part;
        done += part;
        if (done - told >= part_bytes) publish(at + (told = done));
      }
    }
    if (done > told) publish(at + done);
    return {done, done == wanted};
  }
  [[nodiscard]] std::size_t room() noexcept {
    read_ = bounded(head_->read.load(std::memory_order_acquire), written_);
    return capacity - static_cast<std::size_t>(written_ - read_);
  }

  [[nodiscard]] bool has_data() const noexcept { return end_ != read_ || look(); }
  /// Reader: copies the next bytes and leaves them there.
  ///
  /// Result: how many bytes there are, also beyond those that were asked for
  [[nodiscard]] std::size_t peek(std::span<std::byte> into) const noexcept {
    const std::size_t there = available(into.size());
    copy(read_, into.data(), std::min(there, into.size()));
    return there;
  }
  /// Reader: takes `seen` bytes that it has peeked at, and those of `into` behind them; all of them are there.
  void take(std::size_t seen, const piece& into) noexcept {
    copy(read_ + seen, into.data, into.bytes);
    read_ += seen + into.bytes;
    head_->read.store(read_, std::memory_order_release);
  }
  /// Reader: as much as has come and fits.
  std::size_t read(std::span<const piece> into) noexcept {
    std::size_t wanted = 0;
    for (const piece& p : into) wanted += p.bytes;
    const std::size_t there = available(wanted);
    std::size_t done = 0;
    for (const piece& p : into) {
      const std::size_t part = std::min(p.bytes, there - done);
      copy(read_ + done, p.data, part);
      done += part;
    }
    read_ += done;
    if (done > 0) head_->read.store(read_, std::memory_order_release);
    return done;
  }

 private:
  static constexpr std::size_t part_bytes = std::size_t{32} << 10;
  static constexpr std::size_t word_bytes = sizeof(std::uint64_t);

  [[nodiscard]] static std::uint64_t bounded(std::uint64_t read, std::uint64_t written) noexcept {
    return written - read <= capacity ? read : written - capacity;
  }
  /// How many bytes there are, as far as is known; looks anew where that is less than is wanted.
  [[nodiscard]] std::size_t available(std::size_t wanted) const noexcept {
    if (end_ - read_ < wanted) (void)look();
    return static_cast<std::size_t>(end_ - read_);
  }
  /// Whether there is anything.
  bool look() const noexcept {
    const std::uint64_t word = head_->written.load(std::memory_order_acquire);
    const std::uint64_t more = ((word >> ring_head::shift) - read_) & positions;
    if (more == end_ - read_) return more > 0;
    // A position that cannot be is a peer's mistake: what it claims is not believed beyond the ring.
    end_ = read_ + std::min<std::uint64_t>(more, capacity);
    beside_ = 0;
    if (more > ring_head::beside) fetch_first();
    const std::uint64_t bytes = word & ((std::uint64_t{1} << ring_head::shift) - 1);
    if (more == bytes && bytes <= ring_head::beside) {
      std::uint64_t now[ring_head::words];
      for (std::size_t i = 0; i < ring_head::words; ++i) now[i] = head_->last[i].load(std::memory_order_acquire);
      if (head_->written.load(std::memory_order_relaxed) == word) {
        std::memcpy(last_, now, sizeof now);
        beside_ = bytes;
      }
    }
    return end_ != read_;
  }
  /// What is read first comes from the other core while its header is looked at.
  void fetch_first() const noexcept {
    constexpr std::size_t line = 64;
    const auto bytes = std::min<std::size_t>(static_cast<std::size_t>(end_ - read_), 16 * line);
    for (std::size_t at = 0; at < bytes; at += line) {
      __builtin_prefetch(bytes_ + static_cast<std::size_t>((read_ + at) % capacity));
    }
  }
  /// Bytes [at, at + bytes), all of which are there.
  void copy(std::uint64_t at, std::byte* into, std::size_t bytes) const noexcept {
    if (bytes == 0) return;
    if (beside_ > 0 && end_ - at <= beside_) {
      const std::byte* const from = last_ + (beside_ - (end_ - at));
      std::size_t done = 0;
      for (; done + word_bytes <= bytes; done += word_bytes) std::memcpy(into + done, from + done, word_bytes);
      for (; done < bytes; ++done) into[done] = from[done];
      return;
    }
    const std::size_t start = static_cast<std::size_t>(at % capacity);
    const std::size_t part = std::min(bytes, capacity - start);
    std::memcpy(into, bytes_ + start, part);
    if (bytes > part) std::memcpy(into + part, bytes_, bytes - part);
  }
  void publish(std::uint64_t position) noexcept {
    written_ = position;
    head_->written.store(ring_head::word(position, 0), std::memory_order_release);
  }
  /// A short write, in the ring and beside the word. There is room for as much as may stand beside it. Word by word, as
  /// what has just been written in words is read at once only in words: a wider read waits for the writes.
  void write_beside(std::size_t start, std::span<const piece> from, std::size_t bytes) noexcept {
    head_->written.store(ring_head::word(written_, 0), std::memory_order_relaxed);  // nothing stands there meanwhile
    std::byte* to = bytes_ + start;
    std::atomic<std::uint64_t>* beside = head_->last;
    std::uint64_t word = 0;
    for (const piece& p : from) {
      const std::byte* const whole = p.data + p.bytes / word_bytes * word_bytes;
      for (const std::byte* data = p.data; data != whole; data += word_bytes) {
        std::memcpy(&word, data, word_bytes);
        std::memcpy(to, &word, word_bytes);
        beside++->store(word, std::memory_order_release);
        to += word_bytes;
      }
    }
    if (const std::size_t rest = bytes % word_bytes; rest > 0) {  // of the last one
      word = 0;
      std::memcpy(&word, from.back().data + (from.back().bytes - rest), rest);
      std::memcpy(to, &word, word_bytes);
      beside->store(word, std::memory_order_release);
    }
    written_ += bytes;
    head_->written.store(ring_head::word(written_, bytes), std::memory_order_release);
  }
  /// What a word has room for of a position: more bytes than will ever be written.
  static constexpr std::uint64_t positions = ~std::uint64_t{0} >> ring_head::shift;

  shared_segment memory_{};
  ring_head* head_ = nullptr;
  std::byte* bytes_ = nullptr;
  std::uint64_t written_ = 0;  // the writer's own copy
  std::uint64_t read_ = 0;     // the reader's own, or what the writer last knew of it
  // The reader's: how far it may read, and the bytes before that if they came beside the word.
  mutable std::uint64_t end_ = 0;
  mutable std::size_t beside_ = 0;
  alignas(8) mutable std::byte last_[ring_head::beside] = {};
};

}  // namespace cohort::transport
