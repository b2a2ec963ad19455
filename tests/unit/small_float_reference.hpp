// SPDX-License-Identifier: BSL-1.0
// The definition of a narrow floating-point format, written for clarity and not for speed, in double and with a
// table of every number: what half, bfloat16 and the 8-bit floats are compared with.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace reference {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A format of 1 sign bit, `exponent` bits and `mantissa` bits; all of it follows from IEEE 754, but for the format
/// without infinities, where the code of all ones is NaN and its neighbours are numbers.
class format {
 public:
  format(int exponent, int mantissa, bool has_infinity) : exponent_(exponent), mantissa_(mantissa) {
    const std::uint32_t codes = 1u << (exponent + mantissa);
    top_ = has_infinity ? ((1u << exponent) - 1u) << mantissa : codes - 1u;
    for (std::uint32_t code = 0; code <= top_; ++code) numbers_.push_back(number(code));
  }

  [[nodiscard]] std::uint32_t sign() const { return 1u << (exponent_ + mantissa_); }
  /// The code of infinity, or of NaN where there is no infinity.
  [[nodiscard]] std::uint32_t top() const { return top_; }
  [[nodiscard]] bool is_nan(std::uint32_t code) const {
    const std::uint32_t magnitude = code & (sign() - 1u);
    return magnitude > top_ || (magnitude == top_ && top_ == sign() - 1u);
  }
  [[nodiscard]] double decode(std::uint32_t code) const {
    if (is_nan(code)) return nan;
    const std::uint32_t magnitude = code & (sign() - 1u);
    const double value = magnitude == top_ ? infinity : number(magnitude);
    return (code & sign()) != 0 ? -value : value;
  }
  /// The code nearest to a value that is not NaN; of two equally near, the even one. The number after the largest
  /// counts as a neighbour, and choosing it is an overflow.
  [[nodiscard]] std::uint32_t encode(double value) const {
    const std::uint32_t sign_bit = std::signbit(value) ? sign() : 0u;
    const double magnitude = std::fabs(value);
    if (magnitude >= numbers_.back()) return sign_bit | top_;
    const auto above = std::upper_bound(numbers_.begin(), numbers_.end(), magnitude);
    const std::uint32_t high = static_cast<std::uint32_t>(above - numbers_.begin());
    const std::uint32_t low = high - 1u;
    const double down = magnitude - numbers_[low];
    const double up = numbers_[high] - magnitude;
    const std::uint32_t nearest = down < up ? low : up < down ? high : (low & 1u) == 0 ? low : high;
    return sign_bit | nearest;
  }
  /// Every number that is not negative, and the one after the largest.
  [[nodiscard]] const std::vector<double>& numbers() const { return numbers_; }

 private:
  // The value that a code would have if no code were special.
  [[nodiscard]] double number(std::uint32_t code) const {
    const int bias = (1 << (exponent_ - 1)) - 1;
    const int field = static_cast<int>(code >> mantissa_);
    const double fraction = static_cast<double>(code & ((1u << mantissa_) - 1u));
    if (field == 0) return std::ldexp(fraction, 1 - bias - mantissa_);
    return std::ldexp(std::ldexp(1.0, mantissa_) + fraction, field - bias - mantissa_);
  }

  int exponent_;
  int mantissa_;
  std::uint32_t top_;
  std::vector<double> numbers_{};
};

/// Counts the floats, out of every number, every midpoint, and the floats next to each, with either sign, that
/// `encode` rounds otherwise than the definition.
template <class Encode>
[[nodiscard]] int wrongly_rounded(const format& format, Encode encode) {
  int wrong = 0;
  const auto check = [&](float value) {
    for (const float signed_value : {value, -value}) {
      if (encode(signed_value) != format.encode(static_cast<double>(signed_value))) ++wrong;
    }
  };
  const std::vector<double>& numbers = format.numbers();
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
    for (const double exact : {numbers[i], (numbers[i] + numbers[i + 1]) / 2}) {
      const float value = static_cast<float>(exact);
      check(value);
      check(std::nextafter(value, std::numeric_limits<float>::infinity()));
      if (value > 0) check(std::nextafter(value, 0.0f));
    }
  }
  for (const float large : {0x1.fffffep127f, 0x1p126f, 1e30f, std::numeric_limits<float>::infinity()}) check(large);
  for (const float small : {0x1p-149f, 0x1p-127f, 0x1p-126f, 1e-30f}) check(small);
  return wrong;
}

}  // namespace reference
