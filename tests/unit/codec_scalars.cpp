// SPDX-License-Identifier: BSL-1.0
// Single values as bytes: every bit of them arrives, their place on the wire is fixed, and bytes that are no value
// of the type are refused.
#include <doctest/doctest.h>

#include <cohort/bfloat16.hpp>
#include <cohort/codec.hpp>
#include <cohort/float8.hpp>
#include <cohort/half.hpp>

#include "support/object_bytes.hpp"
#include "support/object_types.hpp"

#include <bit>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace {

using namespace cohort;
using harness::error_of_value;
using harness::hex;
using harness::round_trip;
using harness::value_bytes;

template <class T>
void check_integer() {
  for (const T value : {std::numeric_limits<T>::min(), static_cast<T>(std::numeric_limits<T>::min() + 1),
                        static_cast<T>(0), static_cast<T>(1), static_cast<T>(42),
                        static_cast<T>(std::numeric_limits<T>::max() - 1), std::numeric_limits<T>::max()}) {
    CHECK(round_trip(value) == value);
  }
}

template <class T, class Bits>
void check_float() {
  using limits = std::numeric_limits<T>;
  for (const T value :
       {T(0), -T(0), T(1), T(-1.5), limits::min(), limits::denorm_min(), limits::max(), limits::lowest(),
        limits::epsilon(), limits::infinity(), -limits::infinity(), limits::quiet_NaN()}) {
    CHECK(std::bit_cast<Bits>(round_trip(value)) == std::bit_cast<Bits>(value));
  }
  // A signalling NaN, and payloads of quiet ones.
  const Bits quiet = std::bit_cast<Bits>(limits::quiet_NaN());
  for (const Bits bits : {Bits(quiet + 1), Bits(quiet | 0x1234), Bits(std::bit_cast<Bits>(limits::infinity()) + 1)}) {
    CHECK(std::bit_cast<Bits>(round_trip(std::bit_cast<T>(bits))) == bits);
  }
}

}  // namespace

TEST_CASE("codec: integers and characters of every width") {
  check_integer<char>();
  check_integer<signed char>();
  check_integer<unsigned char>();
  check_integer<short>();
  check_integer<unsigned short>();
  check_integer<int>();
  check_integer<unsigned>();
  check_integer<long>();
  check_integer<unsigned long>();
  check_integer<long long>();
  check_integer<unsigned long long>();
  check_integer<char8_t>();
  check_integer<char16_t>();
  check_integer<char32_t>();
  check_integer<wchar_t>();
  for (unsigned value = 0; value < 256; ++value) CHECK(round_trip(std::byte(value)) == std::byte(value));
  CHECK(round_trip(true));
  CHECK_FALSE(round_trip(false));
}

TEST_CASE("codec: floats bit by bit, NaNs, infinities and negative zeros among them") {
  check_float<float, std::uint32_t>();
  check_float<double, std::uint64_t>();
  CHECK(round_trip(std::complex<float>(1.5F, -0.0F)) == std::complex<float>(1.5F, -0.0F));
  CHECK(std::signbit(round_trip(std::complex<double>(0, -0.0)).imag()));
  for (unsigned bits = 0; bits < 65536; bits += 13) {
    CHECK(round_trip(half::from_bits(static_cast<std::uint16_t>(bits))).bits() == bits);
    CHECK(round_trip(bfloat16::from_bits(static_cast<std::uint16_t>(bits))).bits() == bits);
  }
  for (unsigned bits = 0; bits < 256; ++bits) {
    CHECK(round_trip(float8_e4m3::from_bits(static_cast<std::uint8_t>(bits))).bits() == bits);
    CHECK(round_trip(float8_e5m2::from_bits(static_cast<std::uint8_t>(bits))).bits() == bits);
  }
}

TEST_CASE("codec: long double without its padding") {
  using limits = std::numeric_limits<long double>;
  for (const long double value : {0.0L, 1.0L, -2.5L, limits::min(), limits::denorm_min(), limits::max(),
                                  limits::lowest(), limits::infinity(), 1.0L / 3}) {
    CHECK(round_trip(value) == value);
  }
  CHECK(std::signbit(round_trip(-0.0L)));
  CHECK(round_trip(limits::quiet_NaN()) != round_trip(limits::quiet_NaN()));
  if constexpr (limits::digits == 64) {
    CHECK(hex(value_bytes(1.0L)) == "0000000000000080ff3f");
    CHECK(error_of_value<long double>("0000000000000000ff3f") ==
          "malformed object message: expected a float80 with its leading bit set, found it clear, at byte 10 of 10");
  }
}

TEST_CASE("codec: the bytes of single values are little-endian and of fixed width") {
  CHECK(hex(value_bytes(true)) == "01");
  CHECK(hex(value_bytes('a')) == "61");
  CHECK(hex(value_bytes(std::int16_t{-2})) == "feff");
  CHECK(hex(value_bytes(std::uint32_t{0x01020304})) == "04030201");
  CHECK(hex(value_bytes(-2L)) == "feffffffffffffff");
  CHECK(hex(value_bytes(std::size_t{5})) == "0500000000000000");
  CHECK(hex(value_bytes(L'x')) == "78000000");
  CHECK(hex(value_bytes(1.0F)) == "0000803f");
  CHECK(hex(value_bytes(-2.0)) == "00000000000000c0");
  CHECK(hex(value_bytes(half(1.0F))) == "003c");
  CHECK(hex(value_bytes(std::complex<float>(1, 2))) == "0000803f00000040");
  CHECK(hex(value_bytes(objects::shade::dark)) == "01");
  CHECK(hex(value_bytes(objects::blue)) == "07000000");
}

TEST_CASE("codec: a bool is 0 or 1") {
  CHECK(error_of_value<bool>("02") == "malformed object message: expected a bool of 0 or 1, found 2, at byte 1 of 1");
  CHECK(error_of_value<bool>("ff").starts_with("malformed object message: expected a bool of 0 or 1, found 255"));
  CHECK(
      error_of_value<objects::truth>("02").starts_with("malformed object message: expected a bool of 0 or 1, found 2"));
}

TEST_CASE("codec: an enum of fixed type holds any of its values, another only its enumerators") {
  CHECK(round_trip(objects::shade::dark) == objects::shade::dark);
  CHECK(round_trip(static_cast<objects::shade>(200)) == static_cast<objects::shade>(200));
  CHECK(round_trip(objects::truth::yes) == objects::truth::yes);
  CHECK(round_trip(objects::blue) == objects::blue);
  CHECK(error_of_value<objects::plain_color>("02000000") ==
        "malformed object message: expected an enumerator of objects::plain_color, found 2, at byte 4 of 4");
}

TEST_CASE("codec: durations, points in time and dates") {
  using namespace std::chrono;
  CHECK(round_trip(milliseconds(-5)) == milliseconds(-5));
  CHECK(round_trip(duration<float, std::ratio<1, 3>>(2.5F)) == duration<float, std::ratio<1, 3>>(2.5F));
  CHECK(round_trip(nanoseconds::max()) == nanoseconds::max());
  const auto now = system_clock::now();
  CHECK(round_trip(now) == now);
  const auto tick = steady_clock::now();
  CHECK(round_trip(tick) == tick);
  CHECK(round_trip(sys_days(2024y / 2 / 29)) == sys_days(2024y / 2 / 29));
  CHECK(round_trip(2024y / 2 / 29) == 2024y / 2 / 29);
  CHECK(round_trip(-32767y / 13 / 77) == -32767y / 13 / 77);
  CHECK(hex(value_bytes(seconds(3))) == "0300000000000000");
  CHECK(hex(value_bytes(2024y / 2 / 29)) == "e807021d");
}
