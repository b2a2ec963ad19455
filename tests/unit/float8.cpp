// SPDX-License-Identifier: BSL-1.0
// The two 8-bit floats against the OCP specification's definition: every pattern, every rounding boundary.
#include <doctest/doctest.h>

#include <cohort/float8.hpp>

#include "small_float_reference.hpp"

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

using cohort::float8_e4m3;
using cohort::float8_e5m2;

namespace {

template <class T>
concept has_arithmetic = requires(T a) { a + a; } || requires(T a) { a * a; } || requires(T a) { -a; } ||
                         requires(T a) { a + 1.0f; } || requires(T a) { a < a; };

template <class T>
constexpr bool is_storage = sizeof(T) == 1 && std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> &&
                            std::is_constructible_v<T, float> && std::is_constructible_v<float, T> &&
                            !std::is_convertible_v<T, float> && !std::is_convertible_v<float, T> &&
                            !std::is_constructible_v<bool, T> && std::equality_comparable<T> && !has_arithmetic<T>;

static_assert(is_storage<float8_e4m3> && is_storage<float8_e5m2>);
static_assert(!std::is_constructible_v<float8_e4m3, float8_e5m2>);
static_assert(float8_e4m3(1).bits() == 0x38 && float8_e5m2(1).bits() == 0x3c && float8_e4m3{}.bits() == 0);

template <class T>
void check_patterns(const reference::format& format) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const T stored = T::from_bits(static_cast<std::uint8_t>(bits));
    const float value = static_cast<float>(stored);
    const double defined = format.decode(bits);
    const bool equal = std::isnan(defined) ? std::isnan(value) : static_cast<double>(value) == defined;
    if (!equal || std::signbit(value) != ((bits & 0x80u) != 0)) ++wrong;
    const T back(value);
    if (std::isnan(defined) ? !std::isnan(static_cast<float>(back)) : back.bits() != bits) ++wrong;
    if ((stored == back) == std::isnan(defined)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(reference::wrongly_rounded(format, [](float value) { return T(value).bits(); }) == 0);
}

TEST_CASE("float8_e4m3: all 256 patterns, every midpoint, and what is too large becomes NaN") {
  check_patterns<float8_e4m3>(reference::format(4, 3, false));
  CHECK(static_cast<float>(float8_e4m3(464.0f)) == 448.0f);  // the tie goes to the even code
  CHECK(float8_e4m3(std::nextafter(464.0f, 500.0f)).bits() == 0x7f);
  CHECK(float8_e4m3(-1e30f).bits() == 0xff);
  CHECK(float8_e4m3(std::numeric_limits<float>::infinity()).bits() == 0x7f);
  CHECK(std::isnan(static_cast<float>(float8_e4m3(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("float8_e5m2: all 256 patterns, every midpoint, and what is too large becomes infinite") {
  check_patterns<float8_e5m2>(reference::format(5, 2, true));
  CHECK(float8_e5m2(61439.0f).bits() == 0x7b);
  CHECK(float8_e5m2(61440.0f).bits() == 0x7c);
  CHECK(float8_e5m2(-1e30f).bits() == 0xfc);
  CHECK(float8_e5m2(std::bit_cast<float>(0x7fa00000u)).bits() == 0x7f);  // signalling, payload kept, quiet
}

TEST_CASE("float8: saturated keeps to the largest number") {
  CHECK(static_cast<float>(float8_e4m3::saturated(1e30f)) == 448.0f);
  CHECK(static_cast<float>(float8_e4m3::saturated(-std::numeric_limits<float>::infinity())) == -448.0f);
  CHECK(static_cast<float>(float8_e5m2::saturated(1e30f)) == 57344.0f);
  CHECK(static_cast<float>(float8_e4m3::saturated(447.0f)) == 448.0f);
  CHECK(static_cast<float>(float8_e4m3::saturated(-1.0f)) == -1.0f);
  CHECK(std::isnan(static_cast<float>(float8_e4m3::saturated(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("float8: numeric_limits") {
  using e4m3 = std::numeric_limits<float8_e4m3>;
  using e5m2 = std::numeric_limits<float8_e5m2>;
  static_assert(!e4m3::has_infinity && e4m3::has_quiet_NaN && !e4m3::has_signaling_NaN);
  static_assert(e4m3::digits == 4 && e4m3::max_digits10 == 3 && e4m3::min_exponent == -5 && e4m3::max_exponent == 9);
  static_assert(e4m3::min_exponent10 == -1 && e4m3::max_exponent10 == 2);
  static_assert(e5m2::has_infinity && e5m2::digits == 3 && e5m2::max_digits10 == 2 && e5m2::max_exponent == 16);
  static_assert(e5m2::min_exponent10 == -4 && e5m2::max_exponent10 == 4);
  CHECK(static_cast<float>(e4m3::max()) == 448.0f);
  CHECK(static_cast<float>(e4m3::lowest()) == -448.0f);
  CHECK(static_cast<float>(e4m3::min()) == 0x1p-6f);
  CHECK(static_cast<float>(e4m3::denorm_min()) == 0x1p-9f);
  CHECK(static_cast<float>(e4m3::epsilon()) == 0.125f);
  CHECK(e4m3::quiet_NaN().bits() == 0x7f);
  CHECK(static_cast<float>(e5m2::max()) == 57344.0f);
  CHECK(static_cast<float>(e5m2::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(e5m2::quiet_NaN().bits() == 0x7e);
  CHECK(e5m2::signaling_NaN().bits() == 0x7d);
}

}  // namespace
