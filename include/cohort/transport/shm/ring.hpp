// SPDX-License-Identifier: BSL-1.0
// Bytes in one direction between two processes: one writes, one reads, neither waits. Used by shm/stream.hpp.
#pragma once

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
struct ring_head {
  alignas(128) std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint32_t> full{0};  ///< the writer waits for room, and wants to be woken
  alignas(128) std::atomic<std::uint64_t> read{0};
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

  /// Writer: as much as there is room for.
  std::size_t write(std::span<const piece> from) noexcept {
    const std::uint64_t at = written_;
    std::size_t room = capacity - static_cast<std::size_t>(at - read_);
    std::size_t wanted = 0;
    for (const piece& p : from) wanted += p.bytes;
    if (room < wanted) {
      read_ = bounded(head_->read.load(std::memory_order_acquire), at);
      room = capacity - static_cast<std::size_t>(at - read_);
    }
    const std::size_t start = static_cast<std::size_t>(at % capacity);
    if (wanted <= std::min({room, part_bytes, capacity - start})) {  // in one go: most messages
      std::byte* to = bytes_ + start;
      for (const piece& p : from) {
        std::memcpy(to, p.data, p.bytes);
        to += p.bytes;
      }
      if (wanted > 0) publish(at + wanted);
      return wanted;
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
    return done;
  }
  [[nodiscard]] bool has_room() noexcept {
    read_ = bounded(head_->read.load(std::memory_order_acquire), written_);
    return written_ - read_ < capacity;
  }

  [[nodiscard]] bool has_data() const noexcept { return head_->written.load(std::memory_order_acquire) != read_; }
  /// Reader: copies the next bytes and leaves them there.
  ///
  /// Result: how many bytes there are, also beyond those that were asked for
  [[nodiscard]] std::size_t peek(std::span<std::byte> into) const noexcept {
    const std::size_t there = available();
    const std::size_t start = static_cast<std::size_t>(read_ % capacity);
    const std::size_t wanted = std::min(there, into.size());
    const std::size_t part = std::min(wanted, capacity - start);
    std::memcpy(into.data(), bytes_ + start, part);
    std::memcpy(into.data() + part, bytes_, wanted - part);
    return there;
  }
  /// Reader: as much as has come and fits.
  std::size_t read(std::span<const piece> into) noexcept {
    const std::size_t there = available();
    std::size_t done = 0;
    for (const piece& p : into) {
      std::size_t left = std::min(p.bytes, there - done);
      std::byte* data = p.data;
      while (left > 0) {
        const std::size_t offset = static_cast<std::size_t>((read_ + done) % capacity);
        const std::size_t part = std::min({left, capacity - offset});
        std::memcpy(data, bytes_ + offset, part);
        data += part;
        left -= part;
        done += part;
      }
    }
    read_ += done;
    if (done > 0) head_->read.store(read_, std::memory_order_release);
    return done;
  }

 private:
  static constexpr std::size_t part_bytes = std::size_t{32} << 10;

  [[nodiscard]] static std::uint64_t bounded(std::uint64_t read, std::uint64_t written) noexcept {
    return written - read <= capacity ? read : written - capacity;
  }
  [[nodiscard]] std::size_t available() const noexcept {
    // A position that cannot be is a peer's mistake: what it claims is not believed beyond the ring.
    const std::uint64_t end = head_->written.load(std::memory_order_acquire);
    return static_cast<std::size_t>(std::min<std::uint64_t>(end - read_, capacity));
  }
  void publish(std::uint64_t position) noexcept {
    written_ = position;
    head_->written.store(position, std::memory_order_release);
  }

  shared_segment memory_{};
  ring_head* head_ = nullptr;
  std::byte* bytes_ = nullptr;
  std::uint64_t written_ = 0;  // the writer's own copy
  std::uint64_t read_ = 0;     // the reader's own, or what the writer last knew of it
};

}  // namespace cohort::transport
