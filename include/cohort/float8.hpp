// SPDX-License-Identifier: BSL-1.0
// The two 8-bit floats of the OCP specification as element types: storage only, so they travel and are converted
// but not reduced. The narrowest formats of detail/small_float.hpp.
#pragma once

#include <cohort/detail/small_float.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace cohort {

namespace detail {

/// What the two formats share. All conversions are explicit: there is no arithmetic to slide into by accident.
template <class Self, class Format>
class float8_storage {
 public:
  using format = Format;

  float8_storage() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr explicit float8_storage(Number value) noexcept
      : bits_(static_cast<std::uint8_t>(Format::encode(encodable(value)))) {}

  [[nodiscard]] static constexpr Self from_bits(std::uint8_t bits) noexcept {
    Self value{};
    value.bits_ = bits;
    return value;
  }
  /// As the explicit conversion, but what is too large, infinity included, becomes the largest number.
  [[nodiscard]] static constexpr Self saturated(float value) noexcept {
    constexpr float largest = Format::decode(Format::overflow - 1u);
    return Self(value > largest ? largest : value < -largest ? -largest : value);
  }
  [[nodiscard]] constexpr std::uint8_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr explicit operator float() const noexcept { return Format::decode(bits_); }
  /// By value, as for every float: NaN differs from itself, and the two zeros are equal.
  [[nodiscard]] friend constexpr bool operator==(Self a, Self b) noexcept {
    return static_cast<float>(a) == static_cast<float>(b);
  }

 private:
  std::uint8_t bits_;
};

}  // namespace detail

/// 1 sign, 4 exponent and 3 mantissa bits ("e4m3fn"): up to 448, no infinity; what is too large becomes NaN.
class float8_e4m3 : public detail::float8_storage<float8_e4m3, detail::small_float_format<4, 3, false>> {
 public:
  using float8_storage::float8_storage;
};

/// 1 sign, 5 exponent and 2 mantissa bits: up to 57344, with infinities; the upper byte of a half.
class float8_e5m2 : public detail::float8_storage<float8_e5m2, detail::small_float_format<5, 2>> {
 public:
  using float8_storage::float8_storage;
};

}  // namespace cohort

template <>
class std::numeric_limits<cohort::float8_e4m3>
    : public cohort::detail::small_float_limits<cohort::float8_e4m3, cohort::float8_e4m3::format> {};
template <>
class std::numeric_limits<cohort::float8_e5m2>
    : public cohort::detail::small_float_limits<cohort::float8_e5m2, cohort::float8_e5m2::format> {};
