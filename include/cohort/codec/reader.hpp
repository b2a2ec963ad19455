// SPDX-License-Identifier: BSL-1.0
// The bounded reader that every codec decodes with: no byte, count, depth or allocation goes unchecked.
// The counterpart of codec/writer.hpp, for bytes of unknown origin.
#pragma once

#include <cohort/codec/limits.hpp>
#include <cohort/codec/properties.hpp>
#include <cohort/detail/byte_codec.hpp>
#include <cohort/error.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

namespace cohort {

/// Takes values from the front of bytes that nobody vouches for.
///
/// Errors:   bad_message, limit_exceeded: what was expected, what was found, and at which byte
/// Lifetime: the bytes are borrowed
class reader {
 public:
  explicit reader(std::span<const std::byte> bytes, const codec_limits& limits = {})
      : bytes_(bytes), limits_(limits), memory_left_(limits.memory) {
    if (bytes.size() > limits.bytes) {
      exceed("a message of " + std::to_string(bytes.size()) + " bytes: codec_limits::bytes allows " +
             std::to_string(limits.bytes));
    }
  }

  /// Reads a value with its codec.
  template <class T>
  [[nodiscard]] std::remove_cv_t<T> read() {
    using plain = std::remove_cv_t<T>;
    if constexpr (!detail::codec_nests<plain>()) {
      return codec<plain>::decode(*this);
    } else {
      if (depth_ >= limits_.depth) exceed(detail::too_deep(limits_.depth));
      const detail::nesting level(depth_);
      return codec<plain>::decode(*this);
    }
  }

  /// Reads over an existing value, which may be a built-in array.
  template <class T>
  void read_into(T& value) {
    if constexpr (!std::is_array_v<T>) {
      value = read<T>();
    } else if constexpr (detail::is_bulk<T>()) {
      copy_to(value, sizeof(T));
    } else {
      for (auto& each : value) read_into(each);
    }
  }

  template <std::unsigned_integral U>
  [[nodiscard]] U number() {
    return detail::get_little<U>(reinterpret_cast<const unsigned char*>(bytes(sizeof(U)).data()));
  }

  /// The number of elements of a container, each of which takes at least `min_size` bytes of the message: believed
  /// only if that many bytes remain. Charges the limit on memory with `each` bytes an element.
  [[nodiscard]] std::size_t count(std::size_t min_size = 1, std::size_t each = 0) {
    const std::uint64_t n = believable(length());
    if (n > remaining() / min_size) {
      fail("expected " + std::to_string(n) + " elements of at least " + std::to_string(min_size) + " bytes, found " +
           std::to_string(remaining()) + " bytes");
    }
    charge(n, each);
    return static_cast<std::size_t>(n);
  }
  /// As above, for bits, 8 to a byte.
  [[nodiscard]] std::size_t bit_count() {
    const std::uint64_t n = believable(length());
    if (n / 8 + (n % 8 != 0) > remaining()) {
      fail("expected " + std::to_string(n) + " bits, found " + std::to_string(remaining()) + " bytes");
    }
    charge(n / 8 + 1);
    return static_cast<std::size_t>(n);
  }
  /// As above, for the elements of a container of T that adds `overhead` bytes to each.
  template <class T>
  [[nodiscard]] std::size_t count_of(std::size_t overhead = 0) {
    return count(detail::min_encoded_size<T>(), sizeof(T) + overhead);
  }

  /// How many of `n` elements to make room for at once: no more than some multiple of the bytes that remain, however
  /// large T is, since most of the elements may never come.
  template <class T>
  [[nodiscard]] std::size_t room_for(std::size_t n) const noexcept {
    return std::min(n, 8 * remaining() / sizeof(T) + 1);
  }

  /// An unsigned number of variable length.
  [[nodiscard]] std::uint64_t length() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto next = number<std::uint8_t>();
      value |= std::uint64_t{next & 0x7fU} << shift;
      if (next >= 0x80) continue;
      if ((next == 0 && shift > 0) || (shift == 63 && next > 1)) break;  // not the shortest form, or beyond 64 bits
      return value;
    }
    fail("expected a count in its shortest form, found another");
  }

  [[nodiscard]] std::span<const std::byte> bytes(std::size_t n) {
    if (n > remaining()) {
      fail("expected " + std::to_string(n) + (n == 1 ? " byte" : " bytes") + ", found " + std::to_string(remaining()));
    }
    const std::span<const std::byte> taken = bytes_.subspan(offset_, n);
    offset_ += n;
    return taken;
  }
  void copy_to(void* to, std::size_t n) {
    const std::span<const std::byte> from = bytes(n);
    if (n != 0) std::memcpy(to, from.data(), n);
  }

  /// Charges the limit on memory, before it is allocated.
  void charge(std::uint64_t n, std::uint64_t each = 1) {
    if (each != 0 && n > memory_left_ / each) {
      exceed(std::to_string(n) + " elements of " + std::to_string(each) +
             " bytes of memory: codec_limits::memory allows " + std::to_string(limits_.memory) +
             " bytes a message, of which " + std::to_string(memory_left_) + " are left");
    }
    memory_left_ -= n * each;
  }

  /// Refuses bytes that follow the last value.
  void finish() const {
    if (remaining() != 0) {
      fail("expected the end of the message, found " + std::to_string(remaining()) + " more bytes");
    }
  }

  /// Refuses the message. `problem` says what was expected and what was found.
  [[noreturn, gnu::cold]] void fail(const std::string& problem) const {
    throw error(errc::bad_message, problem + position());
  }

  [[nodiscard]] std::size_t remaining() const noexcept { return bytes_.size() - offset_; }
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }
  [[nodiscard]] const codec_limits& limits() const noexcept { return limits_; }
  /// Of codec_limits::memory.
  [[nodiscard]] std::uint64_t memory_left() const noexcept { return memory_left_; }

 private:
  [[nodiscard]] std::uint64_t believable(std::uint64_t n) const {
    if (n > limits_.elements) {
      exceed("a container of " + std::to_string(n) + " elements: codec_limits::elements allows " +
             std::to_string(limits_.elements));
    }
    return n;
  }
  [[noreturn, gnu::cold]] void exceed(const std::string& problem) const {
    throw error(errc::limit_exceeded, problem + position());
  }
  [[nodiscard]] std::string position() const {
    return ", at byte " + std::to_string(offset_) + " of " + std::to_string(bytes_.size());
  }

  std::span<const std::byte> bytes_;
  codec_limits limits_;
  std::uint64_t memory_left_;
  std::size_t offset_ = 0;
  int depth_ = 0;
};

}  // namespace cohort
