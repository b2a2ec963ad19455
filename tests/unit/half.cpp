// SPDX-License-Identifier: BSL-1.0
// cohort::half against the definition of binary16: every pattern, every rounding boundary, the arithmetic.
#include <doctest/doctest.h>

#include <cohort/half.hpp>

#include "../support/sanitizer.hpp"
#include "small_float_reference.hpp"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

using cohort::half;

namespace {

const reference::format binary16(5, 10, true);

half pattern(std::uint32_t bits) { return half::from_bits(static_cast<std::uint16_t>(bits)); }

// Equal as codes, or both NaN: the payload of a NaN made of two is the processor's choice.
bool same(half a, std::uint32_t code) {
  return a.bits() == code || (binary16.is_nan(a.bits()) && binary16.is_nan(code));
}

static_assert(sizeof(half) == 2 && alignof(half) == 2);
static_assert(std::is_trivially_copyable_v<half> && std::is_trivially_default_constructible_v<half>);
static_assert(std::is_standard_layout_v<half>);
static_assert(std::is_convertible_v<half, float> && !std::is_convertible_v<float, half>);
static_assert(std::is_constructible_v<half, double> && std::is_constructible_v<half, int>);
static_assert(!std::is_constructible_v<half, const char*>);
static_assert(std::same_as<decltype(half{} + half{}), half> && std::same_as<decltype(-half{}), half>);
static_assert(std::same_as<decltype(half{} * 2.0f), float> && std::same_as<decltype(2.0 - half{}), double>);
static_assert(std::same_as<decltype(half{} / 2), float>);
static_assert(std::totally_ordered<half>);
static_assert(half(1.5f).bits() == 0x3e00 && half(-2).bits() == 0xc000 && half{}.bits() == 0);
static_assert(static_cast<float>(half::from_bits(0x7bff)) == 65504.0f);
static_assert(half(1) + half(2) == half(3) && half(1) < half(2) && half(-1) == -half(1));

TEST_CASE("half: all 65,536 patterns have the value that IEEE 754 defines") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = pattern(bits);
    const double defined = binary16.decode(bits);
    const bool equal = std::isnan(defined) ? std::isnan(value) : static_cast<double>(value) == defined;
    if (!equal || std::signbit(value) != ((bits & 0x8000u) != 0)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: all 65,536 patterns survive a round trip through float") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    // NaN keeps sign and payload, and is quiet afterwards.
    const std::uint32_t expected = binary16.is_nan(bits) ? bits | 0x0200u : bits;
    if (half(static_cast<float>(pattern(bits))).bits() != expected) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: a signalling NaN is quiet as a float, and keeps its payload") {
  CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(pattern(0x7c01))) == 0x7fc02000u);
  CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(pattern(0xfd55))) == 0xffeaa000u);
  CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(pattern(0x7c00))) == 0x7f800000u);
}

TEST_CASE("half: every midpoint, every number and the floats beside them round to nearest even") {
  CHECK(reference::wrongly_rounded(binary16, [](float value) { return half(value).bits(); }) == 0);
}

TEST_CASE("half: NaNs of a float keep what fits of their payload") {
  CHECK(half(std::bit_cast<float>(0x7fc00000u)).bits() == 0x7e00);
  CHECK(half(std::bit_cast<float>(0xffc02000u)).bits() == 0xfe01);
  CHECK(half(std::bit_cast<float>(0x7f800001u)).bits() == 0x7e00);  // signalling, with nothing left of its payload
  CHECK(half(std::bit_cast<float>(0x7fffffffu)).bits() == 0x7fff);
}

TEST_CASE("half: a double is rounded once, not by way of float") {
  int wrong = 0;
  for (std::size_t i = 0; i + 1 < binary16.numbers().size(); ++i) {
    const double tie = (binary16.numbers()[i] + binary16.numbers()[i + 1]) / 2;
    // Nearer to the tie than a float can tell.
    for (const double value : {tie, std::nextafter(tie, 1e300), std::nextafter(tie, 0.0)}) {
      if (half(value).bits() != binary16.encode(value)) ++wrong;
      if (half(-value).bits() != binary16.encode(-value)) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(half(1e300).bits() == 0x7c00);
  CHECK(half(-std::numeric_limits<double>::infinity()).bits() == 0xfc00);
  CHECK(half(1e-300).bits() == 0);
  CHECK(half(-1e-300).bits() == 0x8000);
  CHECK(std::isnan(static_cast<float>(half(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(half(2.5L).bits() == 0x4100);
}

TEST_CASE("half: integers, to beyond the largest number") {
  int wrong = 0;
  for (int i = -70000; i <= 70000; ++i) {
    if (half(i).bits() != binary16.encode(static_cast<double>(i))) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(half(true).bits() == 0x3c00);
  CHECK(half(std::numeric_limits<long long>::min()).bits() == 0xfc00);
}

TEST_CASE("half: + - * / round once, for every pattern and 40 partners; under a sanitizer 4") {
  int wrong = 0;
  for (std::uint32_t k = 0; k < (harness::sanitized ? 4 : 40); ++k) {
    const std::uint32_t partner = (k * 1657u + (k % 4u) * 0x7bffu) & 0xffffu;
    const half b = pattern(partner);
    const double y = binary16.decode(partner);
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      const half a = pattern(bits);
      const double x = binary16.decode(bits);
      // Exact in double, but for the quotient, which is not near enough to a tie for its rounding to matter.
      const auto expect = [](double exact) { return std::isnan(exact) ? 0x7e00u : binary16.encode(exact); };
      wrong += !same(a + b, expect(x + y)) + !same(a - b, expect(x - y)) + !same(a * b, expect(x * y)) +
               !same(a / b, expect(x / y));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("half: compound assignment, negation, comparison") {
  half h(3);
  h += half(1);
  CHECK(h == 4.0f);
  h *= 0.5f;
  CHECK(h == 2.0f);
  h -= 5;
  CHECK(h == -3.0f);
  h /= half(2);
  CHECK(h == -1.5f);
  CHECK((-half::from_bits(0)).bits() == 0x8000);
  CHECK((-half::from_bits(0x7e01)).bits() == 0xfe01);
  CHECK(half::from_bits(0x8000) == half::from_bits(0));
  const half nan = half::from_bits(0x7e00);
  CHECK(nan != nan);
  CHECK_FALSE(nan < half(1));
  CHECK((half(1) <=> half(2)) == std::partial_ordering::less);
}

TEST_CASE("half: numeric_limits") {
  using limits = std::numeric_limits<half>;
  static_assert(limits::is_specialized && limits::is_signed && !limits::is_integer && limits::is_iec559);
  static_assert(limits::digits == 11 && limits::digits10 == 3 && limits::max_digits10 == 5);
  static_assert(limits::min_exponent == -13 && limits::max_exponent == 16);
  static_assert(limits::min_exponent10 == -4 && limits::max_exponent10 == 4);
  CHECK(limits::max() == 65504.0f);
  CHECK(limits::lowest() == -65504.0f);
  CHECK(limits::min() == 0x1p-14f);
  CHECK(limits::denorm_min() == 0x1p-24f);
  CHECK(limits::epsilon() == 0x1p-10f);
  CHECK(half(1) + limits::epsilon() == pattern(half(1).bits() + 1u));
  CHECK(limits::infinity() == std::numeric_limits<float>::infinity());
  CHECK(limits::quiet_NaN().bits() == 0x7e00);
  CHECK(limits::signaling_NaN().bits() == 0x7c01);
}

}  // namespace
