// SPDX-License-Identifier: BSL-1.0
// Owned, cache-line-aligned bytes: early messages and the scratch space of collectives. `buffer_cache` hands
// the same memory out again, so that a training step neither allocates nor touches fresh pages.
#pragma once

#include <algorithm>
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
      : data_(bytes == 0 ? nullptr
                         : static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}))),
        capacity_(bytes) {}
  byte_buffer(byte_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  byte_buffer& operator=(byte_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~byte_buffer() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{alignment});
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
};

/// Buffers that were used before, kept for the next operation. One thread at a time.
class buffer_cache {
 public:
  /// At least `bytes` bytes; their contents are whatever they were.
  [[nodiscard]] byte_buffer take(std::size_t bytes) {
    if (bytes == 0) return {};
    auto best = kept_.end();
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      // A buffer many times too large would be missed by the operation that it was made for.
      if (at->capacity() < bytes || at->capacity() / 4 > std::max<std::size_t>(bytes, 4096)) continue;
      if (best == kept_.end() || at->capacity() < best->capacity()) best = at;
    }
    if (best == kept_.end()) return byte_buffer(round_up(bytes));
    byte_buffer found = std::move(*best);
    held_ -= found.capacity();
    *best = std::move(kept_.back());
    kept_.pop_back();
    return found;
  }

  void give_back(byte_buffer buffer) {
    if (buffer.data() == nullptr || kept_.size() >= most_buffers || held_ + buffer.capacity() > most_bytes) return;
    held_ += buffer.capacity();
    kept_.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t most_buffers = 16;
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;

  // Powers of two up to a page, then quarters of one: nearby sizes share a buffer.
  static constexpr std::size_t round_up(std::size_t bytes) noexcept {
    std::size_t size = 64;
    while (size < bytes && size < 65536) size *= 2;
    return size >= bytes ? size : (bytes + 65535) / 65536 * 65536;
  }

  std::vector<byte_buffer> kept_{};
  std::size_t held_ = 0;
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

 private:
  buffer_cache* cache_ = nullptr;
  byte_buffer buffer_{};
};

}  // namespace cohort::detail
