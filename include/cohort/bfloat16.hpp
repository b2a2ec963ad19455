// SPDX-License-Identifier: BSL-1.0
// bfloat16 as an element type: the upper half of a float, 2 bytes on the wire and in memory, arithmetic in float.
// Reduced by detail/fold.hpp, whose plain loop over it vectorises.
#pragma once

#include <cohort/detail/small_float.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace cohort {

/// A 16-bit float of 8 significant bits with the range of float.
///
/// Result: bfloat16 op bfloat16 is a bfloat16, rounded once, to nearest even; bfloat16 op float is a float, and
///         bfloat16 op double a double
/// Needs:  conversion to bfloat16 is explicit, because it rounds; conversion to float is implicit and exact
/// Errors: none; what is too large becomes infinity, and a NaN keeps its upper payload bits and becomes quiet
class bfloat16 : public detail::float_arithmetic<bfloat16> {
 public:
  using format = detail::small_float_format<8, 7>;

  bfloat16() = default;
  template <class Number>
    requires std::is_arithmetic_v<Number>
  constexpr explicit bfloat16(Number value) noexcept
      : bits_(static_cast<std::uint16_t>(format::encode(detail::encodable(value)))) {}

  [[nodiscard]] static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
    bfloat16 value{};
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
class std::numeric_limits<cohort::bfloat16>
    : public cohort::detail::small_float_limits<cohort::bfloat16, cohort::bfloat16::format> {};
