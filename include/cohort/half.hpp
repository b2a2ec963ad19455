// SPDX-License-Identifier: BSL-1.0
// IEEE binary16 as an element type: 2 bytes on the wire and in memory, arithmetic in float.
// Reduced by detail/fold.hpp, which converts whole arrays with detail/half_array.hpp.
#pragma once

#include <cohort/detail/small_float.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace cohort {

/// A 16-bit float of 11 significant bits, from 2^-24 to 65504.
///
/// Result: half op half is a half, rounded once, to nearest even; half op float is a float, half op double a double
/// Needs:  conversion to half is explicit, because it rounds; conversion to float is implicit and exact
/// Errors: none; what is too large becomes infinity, and a NaN keeps its upper payload bits and becomes quiet
class half : public detail::float_arithmetic<half> {
 public:
  using format = detail::small_float_format<5, 10>;

  half() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr explicit half(Number value) noexcept
      : bits_(static_cast<std::uint16_t>(format::encode(detail::encodable(value)))) {}

  [[nodiscard]] static constexpr half from_bits(std::uint16_t bits) noexcept {
    half value{};
    value.bits_ = bits;
    return value;
  }
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr operator float() const noexcept { return format::decode(bits_); }

 private:
  std::uint16_t bits_;
};

}  // namespace cohort

template <>
class std::numeric_limits<cohort::half>
    : public cohort::detail::small_float_limits<cohort::half, cohort::half::format> {};
