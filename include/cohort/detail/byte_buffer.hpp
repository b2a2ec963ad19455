// SPDX-License-Identifier: BSL-1.0
// Owned, cache-line-aligned bytes: early messages and the scratch space of collectives. `buffer_cache` hands
// the same memory out again, so that a training step neither allocates nor touches fresh pages.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace cohort::detail {

class byte_buffer {
 public:
  static constexpr std::size_t alignment = 64;

  byte_buffer() = default;
  explicit byte_buffer(std::size_t bytes)
      : data_(bytes == 0 ? nullptr : static_cast<std::byte*>(::operator new (bytes, std::align_val_t{alignment}))),
        capacity_(bytes) {}
  byte_buffer(byte_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  byte_buffer& operator=(byte_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~byte_buffer() {
    if (data_ != nullptr) ::operator delete (data_, std::align_val_t{alignment});
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  /// Gives the memory up; `adopt` takes it back.
  [[nodiscard]] std::byte* release() noexcept {
    capacity_ = 0;
    return std::exchange(data_, nullptr);
  }
  [[nodiscard]] static byte_buffer adopt(std::byte* data, std::size_t capacity) noexcept {
    byte_buffer b;
    b.data_ = data;
    b.capacity_ = capacity;
    return b;
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Buffers that were used before, kept for the next operation by size class. One thread at a time.
///
/// Cost: take and give_back are O(1); a buffer has up to a quarter more than was asked for
class buffer_cache {
 public:
  buffer_cache() = default;
  buffer_cache(const buffer_cache&) = delete;
  buffer_cache& operator=(const buffer_cache&) = delete;
  ~buffer_cache() {
    for (unsigned c = 0; c < classes; ++c) {
      while (kept_[c] != nullptr) pop(c);
    }
  }

  /// At least `bytes` bytes; their contents are whatever they were.
  [[nodiscard]] byte_buffer take(std::size_t bytes) {
    if (bytes == 0) return {};
    const unsigned c = class_of(bytes);
    if (c >= classes) return byte_buffer(bytes);
    return kept_[c] != nullptr ? pop(c) : byte_buffer(size_of(c));
  }

  /// Somebody who cannot be stopped may still use these bytes: a buffer that has some of them goes to nobody when it is given
  /// back, and stays.
  ///
  /// Needs: `note_end` with the same when that has ended
  void note_use(const std::byte* data, std::size_t bytes) { in_use_.push_back({data, bytes}); }
  void note_end(const std::byte* data, std::size_t bytes) noexcept {
    const auto at = std::find_if(in_use_.begin(), in_use_.end(),
                                 [&](const range& r) { return r.data == data && r.bytes == bytes; });
    if (at != in_use_.end()) in_use_.erase(at);
  }
  void give_back(byte_buffer buffer) noexcept {
    const std::size_t bytes = buffer.capacity();
    if (!in_use_.empty() && overlaps_use(buffer)) return static_cast<void>(buffer.release());
    if (bytes < least || held_ + bytes > most_bytes) return;
    const unsigned c = class_of(bytes);
    if (c >= classes || size_of(c) != bytes) return;
    held_ += bytes;
    // The memory of a buffer that nobody uses is its place in the list.
    kept_[c] = ::new (buffer.release()) node{kept_[c]};
  }

 private:
  struct node {
    node* next;
  };
  struct range {
    const std::byte* data;
    std::size_t bytes;
  };
  [[nodiscard]] bool overlaps_use(const byte_buffer& buffer) const noexcept {
    const std::byte* const end = buffer.data() + buffer.capacity();
    return std::any_of(in_use_.begin(), in_use_.end(),
                       [&](const range& r) { return r.data < end && buffer.data() < r.data + r.bytes; });
  }
  static constexpr std::size_t least = 64;
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;
  static constexpr unsigned classes = 4 * 32;

  // Four sizes for each power of two: class 4k + q has 64 * 2^k * (4 + q) / 4 bytes.
  static constexpr std::size_t size_of(unsigned c) noexcept { return ((4 + c % 4) * (least / 4)) << (c / 4); }
  static constexpr unsigned class_of(std::size_t bytes) noexcept {
    if (bytes <= least) return 0;
    const std::size_t units = (bytes - 1) / (least / 4);  // at least 4
    const auto octave = static_cast<unsigned>(std::bit_width(units)) - 3;
    return 4 * octave + static_cast<unsigned>(units >> octave) - 4 + 1;
  }

  byte_buffer pop(unsigned c) noexcept {
    node* const first = kept_[c];
    kept_[c] = first->next;
    held_ -= size_of(c);
    return byte_buffer::adopt(reinterpret_cast<std::byte*>(first), size_of(c));
  }

  std::array<node*, classes> kept_{};
  std::size_t held_ = 0;
  std::vector<range> in_use_{};
};

/// A buffer that goes back to its cache when its scope ends.
class borrowed_buffer {
 public:
  borrowed_buffer() = default;
  borrowed_buffer(buffer_cache& cache, std::size_t bytes) : cache_(&cache), buffer_(cache.take(bytes)) {}
  borrowed_buffer(borrowed_buffer&& other) noexcept
      : cache_(std::exchange(other.cache_, nullptr)), buffer_(std::move(other.buffer_)) {}
  borrowed_buffer& operator=(borrowed_buffer&& other) noexcept {
    std::swap(cache_, other.cache_);
    buffer_ = std::move(other.buffer_);
    return *this;
  }
  ~borrowed_buffer() {
    if (cache_ != nullptr) cache_->give_back(std::move(buffer_));
  }
  [[nodiscard]] std::byte* data() const noexcept { return buffer_.data(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return buffer_.capacity(); }
  /// Nobody gets it any more: somebody who cannot be stopped may still write to it.
  void leave() noexcept {
    (void)buffer_.release();
    cache_ = nullptr;
  }

 private:
  buffer_cache* cache_ = nullptr;
  byte_buffer buffer_{};
};

}  // namespace cohort::detail
