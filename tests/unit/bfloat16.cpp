// SPDX-License-Identifier: BSL-1.0
// cohort::bfloat16 against its definition: every pattern, every rounding boundary, the arithmetic.
#include <doctest/doctest.h>

#include <cohort/bfloat16.hpp>
#include <cohort/half.hpp>

#include "../support/sanitizer.hpp"
#include "small_float_reference.hpp"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

using cohort::bfloat16;

namespace {

const reference::format upper_half(8, 7, true);

bfloat16 pattern(std::uint32_t bits) { return bfloat16::from_bits(static_cast<std::uint16_t>(bits)); }

// Equal as codes, or both NaN: the payload of a NaN made of two is the processor's choice.
bool same(bfloat16 a, std::uint32_t code) {
  return a.bits() == code || (upper_half.is_nan(a.bits()) && upper_half.is_nan(code));
}

static_assert(sizeof(bfloat16) == 2 && alignof(bfloat16) == 2);
static_assert(std::is_trivially_copyable_v<bfloat16> && std::is_trivially_default_constructible_v<bfloat16>);
static_assert(std::is_standard_layout_v<bfloat16>);
static_assert(std::is_convertible_v<bfloat16, float> && !std::is_convertible_v<float, bfloat16>);
static_assert(std::same_as<decltype(bfloat16{} + bfloat16{}), bfloat16>);
static_assert(std::same_as<decltype(bfloat16{} * 2.0f), float>);
static_assert(std::same_as<decltype(bfloat16{} + cohort::half{}), float>);
static_assert(std::totally_ordered<bfloat16>);
static_assert(bfloat16(1.5f).bits() == 0x3fc0 && bfloat16{}.bits() == 0 && bfloat16(3) > bfloat16(2));

TEST_CASE("bfloat16: all 65,536 patterns have the value that the format defines") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = pattern(bits);
    const double defined = upper_half.decode(bits);
    const bool equal = std::isnan(defined) ? std::isnan(value) : static_cast<double>(value) == defined;
    if (!equal || std::signbit(value) != ((bits & 0x8000u) != 0)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: all 65,536 patterns survive a round trip through float") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint32_t expected = upper_half.is_nan(bits) ? bits | 0x0040u : bits;
    if (bfloat16(static_cast<float>(pattern(bits))).bits() != expected) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: every midpoint, every number and the floats beside them round to nearest even") {
  CHECK(reference::wrongly_rounded(upper_half, [](float value) { return bfloat16(value).bits(); }) == 0);
}

TEST_CASE("bfloat16: NaNs of a float keep what fits of their payload, and never become infinite") {
  CHECK(bfloat16(std::bit_cast<float>(0x7fc00000u)).bits() == 0x7fc0);
  CHECK(bfloat16(std::bit_cast<float>(0xffc10000u)).bits() == 0xffc1);
  CHECK(bfloat16(std::bit_cast<float>(0x7f800001u)).bits() == 0x7fc0);
  CHECK(bfloat16(std::bit_cast<float>(0x7fffffffu)).bits() == 0x7fff);
}

TEST_CASE("bfloat16: a double is rounded once, not by way of float") {
  int wrong = 0;
  for (std::size_t i = 0; i + 1 < upper_half.numbers().size(); ++i) {
    const double tie = (upper_half.numbers()[i] + upper_half.numbers()[i + 1]) / 2;
    for (const double value : {tie, std::nextafter(tie, 1e300), std::nextafter(tie, 0.0)}) {
      if (bfloat16(value).bits() != upper_half.encode(value)) ++wrong;
      if (bfloat16(-value).bits() != upper_half.encode(-value)) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(bfloat16(1e300).bits() == 0x7f80);
  CHECK(bfloat16(16908289).bits() == upper_half.encode(16908289.0));  // one above a tie that float rounds down to
  CHECK(bfloat16(std::numeric_limits<unsigned long long>::max()).bits() == bfloat16(0x1p64).bits());
}

TEST_CASE("bfloat16: + - * / round once, for every pattern and 40 partners; under a sanitizer 4") {
  int wrong = 0;
  for (std::uint32_t k = 0; k < (harness::sanitized ? 4 : 40); ++k) {
    const std::uint32_t partner = (k * 1657u + (k % 4u) * 0x7f7fu) & 0xffffu;
    const bfloat16 b = pattern(partner);
    const double y = upper_half.decode(partner);
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const bfloat16 a = pattern(bits);
      const double x = upper_half.decode(bits);
      const auto expect = [](double exact) { return std::isnan(exact) ? 0x7fc0u : upper_half.encode(exact); };
      wrong += !same(a + b, expect(x + y)) + !same(a - b, expect(x - y)) + !same(a * b, expect(x * y)) +
               !same(a / b, expect(x / y));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: compound assignment, negation, comparison") {
  bfloat16 b(3);
  b += bfloat16(1);
  b *= 0.5f;
  b -= 5;
  b /= bfloat16(2);
  CHECK(b == -1.5f);
  CHECK((-bfloat16::from_bits(0)).bits() == 0x8000);
  CHECK(bfloat16::from_bits(0x8000) == bfloat16::from_bits(0));
  CHECK(bfloat16::from_bits(0x7fc0) != bfloat16::from_bits(0x7fc0));
}

TEST_CASE("bfloat16: numeric_limits") {
  using limits = std::numeric_limits<bfloat16>;
  static_assert(limits::is_specialized && !limits::is_iec559);
  static_assert(limits::digits == 8 && limits::digits10 == 2 && limits::max_digits10 == 4);
  static_assert(limits::min_exponent == std::numeric_limits<float>::min_exponent);
  static_assert(limits::max_exponent == std::numeric_limits<float>::max_exponent);
  static_assert(limits::min_exponent10 == std::numeric_limits<float>::min_exponent10);
  static_assert(limits::max_exponent10 == std::numeric_limits<float>::max_exponent10);
  CHECK(limits::max() == 0x1.fep127f);
  CHECK(limits::lowest() == -0x1.fep127f);
  CHECK(limits::min() == std::numeric_limits<float>::min());
  CHECK(limits::denorm_min() == 0x1p-133f);
  CHECK(limits::epsilon() == 0x1p-7f);
  CHECK(limits::infinity() == std::numeric_limits<float>::infinity());
  CHECK(limits::quiet_NaN().bits() == 0x7fc0);
  CHECK(limits::signaling_NaN().bits() == 0x7f81);
}

}  // namespace
