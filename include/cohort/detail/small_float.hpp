// SPDX-License-Identifier: BSL-1.0
// Floating-point formats narrower than float: bit-exact conversion, the operators that the 16-bit types share, and
// their numeric limits. half.hpp, bfloat16.hpp and float8.hpp each name one format.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cohort::detail {

/// A format of one sign bit, `Exponent` bits and `Mantissa` bits. Without infinity (OCP's E4M3) the one code of all
/// ones is NaN and the rest of the top exponent holds numbers. Pure integer selects: loops over them vectorise.
template <int Exponent, int Mantissa, bool HasInfinity = true>
struct small_float_format {
  static constexpr int mantissa = Mantissa;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr int shift = 23 - Mantissa;
  static constexpr bool has_infinity = HasInfinity;
  static constexpr std::uint32_t sign = 1u << (Exponent + Mantissa);
  static constexpr std::uint32_t quiet = 1u << (Mantissa - 1);
  /// The code of infinity, or of NaN where there is none: what a number too large becomes.
  static constexpr std::uint32_t overflow = HasInfinity ? ((1u << Exponent) - 1u) << Mantissa : sign - 1u;

  /// Rounds to nearest, ties to even, once; NaN stays NaN, quiet, with the upper bits of its payload.
  [[nodiscard]] static constexpr std::uint32_t encode(float value) noexcept {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t is_nan = less(0x7f800000u, magnitude);
    constexpr std::uint32_t below_half = (1u << (shift - 1)) - 1u;
    if constexpr (bias == 127) {  // the exponents agree: only the mantissa is cut
      const std::uint32_t rounded = (bits + below_half + ((bits >> shift) & 1u)) >> shift;
      return select(is_nan, (bits >> shift) | quiet, rounded);
    } else {
      std::uint32_t code = (magnitude - rebias + below_half + ((magnitude >> shift) & 1u)) >> shift;
      // Adding a number whose last place is the smallest subnormal makes the adder do the rounding.
      constexpr std::uint32_t ruler = static_cast<std::uint32_t>(1 - bias - Mantissa + 23 + 127) << 23;
      const float on_ruler = std::bit_cast<float>(magnitude) + std::bit_cast<float>(ruler);
      code = select(less(magnitude, smallest_normal), std::bit_cast<std::uint32_t>(on_ruler) - ruler, code);
      code = select(less(overflow, code), overflow, code);
      code = select(is_nan, overflow | quiet | ((magnitude >> shift) & (quiet - 1u)), code);
      return code | ((bits >> 31) * sign);
    }
  }

  /// Exact. A signalling NaN becomes quiet, now or (bfloat16) in the first computation.
  [[nodiscard]] static constexpr float decode(std::uint32_t code) noexcept {
    if constexpr (bias == 127) {
      return std::bit_cast<float>(code << shift);
    } else {
      const std::uint32_t magnitude = code & (sign - 1u);
      std::uint32_t bits = (magnitude << shift) + rebias;
      // As if the exponent were 1, which adds one smallest normal number, and that is taken away again.
      const float subnormal = std::bit_cast<float>(bits + (1u << 23)) - std::bit_cast<float>(smallest_normal);
      bits = select(less(magnitude, 1u << Mantissa), std::bit_cast<std::uint32_t>(subnormal), bits);
      std::uint32_t special = 0x7fc00000u;
      if constexpr (HasInfinity) {
        special = (magnitude << shift) | 0x7f800000u | (less(overflow, magnitude) & 0x400000u);
      }
      bits = select(less(overflow - 1u, magnitude), special, bits);
      return std::bit_cast<float>(bits | ((code & sign) << (31 - Exponent - Mantissa)));
    }
  }

 private:
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr std::uint32_t smallest_normal = rebias + (1u << 23);  // as the bits of a float

  // Choices are masks: g++ does not turn so many conditional expressions into vector code. The comparison is
  // signed because SSE2 has no other; no operand reaches 2^31, except codes below zero, which are then replaced.
  static constexpr std::uint32_t less(std::uint32_t a, std::uint32_t b) noexcept {
    return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? 0xffffffffu : 0u;
  }
  static constexpr std::uint32_t select(std::uint32_t mask, std::uint32_t chosen, std::uint32_t other) noexcept {
    return (chosen & mask) | (other & ~mask);
  }
};

/// The float from which a narrower format gets the same rounding as from `value`: where float cannot hold the
/// value, the neighbour with an odd last bit, which no second rounding can mistake for a tie.
template <std::floating_point Wide>
[[nodiscard]] constexpr float round_to_odd(Wide value) noexcept {
  constexpr float largest = std::numeric_limits<float>::max();
  const Wide magnitude = value < 0 ? -value : value;
  if (magnitude > static_cast<Wide>(largest) && magnitude <= std::numeric_limits<Wide>::max()) {
    return value < 0 ? -largest : largest;
  }
  const float nearest = static_cast<float>(value);
  const Wide found = static_cast<Wide>(nearest);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (found == value || value != value || (bits & 1u) != 0) return nearest;
  const bool too_far = (found < 0 ? -found : found) > magnitude;
  return std::bit_cast<float>(too_far ? bits - 1u : bits + 1u);
}

/// Any arithmetic value as the float to encode. Integers go through double, which holds those below 2^53 exactly.
template <class Number>
[[nodiscard]] constexpr float encodable(Number value) noexcept {
  if constexpr (std::is_same_v<Number, float>) return value;
  else if constexpr (std::is_integral_v<Number>) return round_to_odd(static_cast<double>(value));
  else return round_to_odd(value);
}

/// The operators of a 16-bit type that computes in float. Between two numbers that fit, a float holds the sum,
/// product and quotient so exactly that rounding it again is one correct rounding (24 >= 2 * 11 + 2 digits).
template <class Self>
struct float_arithmetic {
  [[nodiscard]] friend constexpr Self operator+(Self a, Self b) noexcept {
    return Self(static_cast<float>(a) + static_cast<float>(b));
  }
  [[nodiscard]] friend constexpr Self operator-(Self a, Self b) noexcept {
    return Self(static_cast<float>(a) - static_cast<float>(b));
  }
  [[nodiscard]] friend constexpr Self operator*(Self a, Self b) noexcept {
    return Self(static_cast<float>(a) * static_cast<float>(b));
  }
  [[nodiscard]] friend constexpr Self operator/(Self a, Self b) noexcept {
    return Self(static_cast<float>(a) / static_cast<float>(b));
  }
  [[nodiscard]] friend constexpr Self operator-(Self a) noexcept {
    return Self::from_bits(static_cast<std::uint16_t>(a.bits() ^ 0x8000u));
  }
  friend constexpr Self& operator+=(Self& a, float b) noexcept { return a = Self(static_cast<float>(a) + b); }
  friend constexpr Self& operator-=(Self& a, float b) noexcept { return a = Self(static_cast<float>(a) - b); }
  friend constexpr Self& operator*=(Self& a, float b) noexcept { return a = Self(static_cast<float>(a) * b); }
  friend constexpr Self& operator/=(Self& a, float b) noexcept { return a = Self(static_cast<float>(a) / b); }
};

/// What std::numeric_limits says about T, whose bits are those of `Format`.
template <class T, class Format>
struct small_float_limits {
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = Format::has_infinity;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = Format::has_infinity;
  static constexpr std::float_denorm_style has_denorm = std::denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr bool is_iec559 = Format::mantissa == 10;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int radix = 2;
  static constexpr int digits = Format::mantissa + 1;
  static constexpr int digits10 = Format::mantissa * 30103 / 100000;
  static constexpr int max_digits10 = 2 + digits * 30103 / 100000;
  static constexpr int min_exponent = 2 - Format::bias;
  static constexpr int max_exponent = Format::bias + (Format::has_infinity ? 1 : 2);
  static constexpr int min_exponent10 = -((Format::bias - 1) * 30103 / 100000);
  static constexpr int max_exponent10 = max_exponent * 30103 / 100000;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  [[nodiscard]] static constexpr T min() noexcept { return from(1u << Format::mantissa); }
  [[nodiscard]] static constexpr T max() noexcept { return from(Format::overflow - 1u); }
  [[nodiscard]] static constexpr T lowest() noexcept { return from(Format::sign | (Format::overflow - 1u)); }
  [[nodiscard]] static constexpr T denorm_min() noexcept { return from(1u); }
  [[nodiscard]] static constexpr T epsilon() noexcept { return T(1.0f / static_cast<float>(1 << Format::mantissa)); }
  [[nodiscard]] static constexpr T round_error() noexcept { return T(0.5f); }
  [[nodiscard]] static constexpr T infinity() noexcept { return from(has_infinity ? Format::overflow : 0u); }
  [[nodiscard]] static constexpr T quiet_NaN() noexcept { return from(Format::overflow | Format::quiet); }
  [[nodiscard]] static constexpr T signaling_NaN() noexcept { return from(has_infinity ? Format::overflow | 1u : 0u); }

 private:
  static constexpr T from(std::uint32_t bits) noexcept { return T::from_bits(static_cast<decltype(T{}.bits())>(bits)); }
};

}  // namespace cohort::detail
