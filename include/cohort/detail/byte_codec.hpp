// SPDX-License-Identifier: BSL-1.0
// Little-endian integers and length-prefixed text in strings of bytes, written and read with every bound checked.
// What the hello, the store's wire protocol, the store file and the rendezvous records are made of.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace cohort::detail {

// g++ 12 does not see that the loops are one instruction, and they are in the header of every message.
template <std::unsigned_integral U>
constexpr void put_little(unsigned char* to, U value) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    if (!std::is_constant_evaluated()) {
      std::memcpy(to, &value, sizeof(U));
      return;
    }
  }
  for (std::size_t i = 0; i < sizeof(U); ++i) to[i] = static_cast<unsigned char>((value >> (8 * i)) & 0xffU);
}

template <std::unsigned_integral U>
[[nodiscard]] constexpr U get_little(const unsigned char* from) noexcept {
  U value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    if (!std::is_constant_evaluated()) {
      std::memcpy(&value, from, sizeof(U));
      return value;
    }
  }
  for (std::size_t i = 0; i < sizeof(U); ++i) value = static_cast<U>(value | (static_cast<U>(from[i]) << (8 * i)));
  return value;
}

/// Appends to a string of bytes.
class byte_writer {
 public:
  explicit byte_writer(std::string& out) noexcept : out_(&out) {}

  template <std::unsigned_integral U>
  byte_writer& number(U value) {
    unsigned char bytes[sizeof(U)] = {};
    put_little(bytes, value);
    out_->append(reinterpret_cast<const char*>(bytes), sizeof(U));
    return *this;
  }
  byte_writer& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    out_->append(value);
    return *this;
  }

 private:
  std::string* out_;
};

/// Takes values from the front of a string of bytes that nobody vouches for. The first value that does not fit
/// makes every later one empty, so one look at `complete()` at the end judges the whole.
class byte_reader {
 public:
  explicit byte_reader(std::string_view bytes) noexcept : rest_(bytes) {}

  template <std::unsigned_integral U>
  [[nodiscard]] U number() noexcept {
    if (rest_.size() < sizeof(U)) return fail<U>();
    const U value = get_little<U>(reinterpret_cast<const unsigned char*>(rest_.data()));
    rest_.remove_prefix(sizeof(U));
    return value;
  }
  [[nodiscard]] std::string_view text(std::size_t limit) noexcept {
    const std::size_t size = number<std::uint32_t>();
    if (size > limit || size > rest_.size()) return fail<std::string_view>();
    const std::string_view value = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return value;
  }
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }
  [[nodiscard]] bool good() const noexcept { return good_; }
  /// Every value was there, and nothing follows the last one.
  [[nodiscard]] bool complete() const noexcept { return good_ && rest_.empty(); }

 private:
  template <class T>
  [[nodiscard]] T fail() noexcept {
    good_ = false;
    rest_ = {};
    return T{};
  }

  std::string_view rest_;
  bool good_ = true;
};

/// FNV-1a: tells accidents apart, not attackers.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes,
                                            std::uint64_t from = 0xcbf29ce484222325ULL) noexcept {
  std::uint64_t h = from;
  for (const char c : bytes) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ULL;
  }
  return h;
}

}  // namespace cohort::detail
