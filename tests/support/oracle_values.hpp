// SPDX-License-Identifier: BSL-1.0
// What the oracle tests reduce and move: element types of every kind, functors that commute and that do not, and
// operands that are a function of (seed, rank, index), so that every rank knows those of all others without a message.
#pragma once

#include "sanitizer.hpp"

#include <cohort/bfloat16.hpp>
#include <cohort/half.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace oracle {

using complex = std::complex<double>;

// --- elements that are structs; none has padding, so that bytes can be compared

struct rgb {  // 3 bytes: nothing in a message is aligned
  std::uint8_t r, g, b;
};
struct vec3 {
  std::int32_t x, y, z;
};
struct matrix2 {
  std::uint32_t a, b, c, d;
};
struct word {
  std::uint8_t length;
  std::array<char, 15> letters;
};

/// What blocks are moved of. The library moves bytes whatever they are, so that under a sanitizer two are enough: one
/// whose blocks are never aligned, and one whose longest are longer than what the ranks of a process buffer.
#if COHORT_TEST_SANITIZED
using moved_types = std::tuple<rgb, complex>;
#else
using moved_types = std::tuple<std::int32_t, float, cohort::half, cohort::bfloat16, complex, rgb>;
#endif
/// The longest block in most tests.
inline constexpr std::size_t prime = harness::sanitized ? 4099 : 10007;
inline constexpr std::size_t smaller_prime = 1009;

// --- functors; none throws, so that a library which calls them back may carry them out

struct add_vec3 {
  static constexpr bool commutative = true;
  vec3 operator()(const vec3& p, const vec3& q) const noexcept {
    const cohort::sum add;
    return {add(p.x, q.x), add(p.y, q.y), add(p.z, q.z)};
  }
};

/// Modulo 2^32, so that it is associative to the bit. It does not commute, and nothing says that it does.
struct multiply {
  matrix2 operator()(const matrix2& p, const matrix2& q) const noexcept {
    return {p.a * q.a + p.b * q.c, p.a * q.b + p.b * q.d, p.c * q.a + p.d * q.c, p.c * q.b + p.d * q.d};
  }
};

/// As strings; what is too long is cut off at the end, which keeps it associative.
struct concatenate {
  word operator()(const word& p, const word& q) const noexcept {
    word both = p;
    for (std::size_t i = 0; i < q.length && both.length < both.letters.size(); ++i) {
      both.letters[both.length++] = q.letters[i];
    }
    return both;
  }
};

/// A functor with a state, which the operation must keep.
struct modular_sum {
  static constexpr bool commutative = true;
  std::int32_t modulus;
  std::int32_t operator()(std::int32_t a, std::int32_t b) const noexcept { return (a + b) % modulus; }
};

// --- operands

/// Where operands are rounded when they are combined, `rough` ones show the grouping; `exact` ones never do.
enum class data : bool { exact, rough };

// Of what is called for each element, into its caller also where nothing is optimised.
[[nodiscard, gnu::always_inline]] COHORT_TEST_NOT_SANITIZED constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}
[[nodiscard, gnu::always_inline]] COHORT_TEST_NOT_SANITIZED constexpr std::uint64_t bits_at(
    std::uint64_t seed, int rank, std::size_t index) noexcept {
  return mix(mix(seed * 1021 + static_cast<std::uint64_t>(rank)) + index);
}

/// An element of any type with random bytes: for what moves them only.
template <class T>
[[nodiscard, gnu::always_inline]] COHORT_TEST_NOT_SANITIZED inline T token(std::uint64_t seed, int rank,
                                                                           std::size_t index) {
  constexpr std::size_t words = (sizeof(T) + 7) / 8;
  std::uint64_t bits[words];
  for (std::size_t i = 0; i < words; ++i) bits[i] = bits_at(seed + 7919 * i, rank, index);
  T value{};
  __builtin_memcpy(static_cast<void*>(&value), bits, sizeof(T));
  return value;
}
template <class T>
COHORT_TEST_NOT_SANITIZED void write_tokens(T* into, std::uint64_t seed, int rank, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) into[i] = token<T>(seed, rank, i);
}
template <class T>
[[nodiscard]] std::vector<T> tokens(std::uint64_t seed, int rank, std::size_t count) {
  std::vector<T> all(count);
  write_tokens(all.data(), seed, rank, count);
  return all;
}

namespace detail {
/// Exact: an integer from -8 to 8, of which 8 add up without rounding even in bfloat16.
inline constexpr double scales[] = {0x1p-6, 0x1p-5, 0x1p-4, 0x1p-3, 0x1p-2, 0x1p-1, 0x1p0,
                                    0x1p1,  0x1p2,  0x1p3,  0x1p4,  0x1p5,  0x1p6};
[[nodiscard, gnu::always_inline]] COHORT_TEST_NOT_SANITIZED inline double real_operand(std::uint64_t bits, data kind) {
  if (kind == data::exact) return static_cast<double>(static_cast<int>(bits % 17) - 8);
  const double magnitude = (1.0 + static_cast<double>(bits >> 40) * 0x1p-24) * scales[bits % 13];
  return (bits & 0x10000) != 0 ? -magnitude : magnitude;
}
}  // namespace detail

template <class T, class Op>
[[nodiscard, gnu::always_inline]] COHORT_TEST_NOT_SANITIZED inline T operand(std::uint64_t seed, int rank,
                                                                             std::size_t index, data kind) {
  const std::uint64_t bits = bits_at(seed, rank, index);
  const auto low = static_cast<std::uint32_t>(bits);
  const auto high = static_cast<std::uint32_t>(bits >> 32);
  if constexpr (std::is_same_v<Op, modular_sum>) return static_cast<T>(low % 1000);
  else if constexpr (std::is_same_v<T, word>) {
    word w{};
    w.length = static_cast<std::uint8_t>(low % 4 != 0);
    if (w.length != 0) w.letters[0] = static_cast<char>('a' + high % 26);
    return w;
  } else if constexpr (std::is_same_v<T, matrix2>) return {low, high, low ^ 0x5bd1e995U, high + low};
  else if constexpr (std::is_same_v<T, vec3>) return token<vec3>(seed, rank, index);
  else if constexpr (std::is_same_v<T, complex>) {
    return {detail::real_operand(bits, kind), detail::real_operand(mix(bits), kind)};
  } else if constexpr (std::is_integral_v<T>) return static_cast<T>(bits);
  else return static_cast<T>(detail::real_operand(bits, kind));
}

template <class T, class Op>
COHORT_TEST_NOT_SANITIZED void write_operands(T* into, std::uint64_t seed, int rank, std::size_t count, data kind) {
  for (std::size_t i = 0; i < count; ++i) into[i] = operand<T, Op>(seed, rank, i, kind);
}

/// The functor that a rank passes: the factors of premultiplied_sum differ from rank to rank.
template <class Op>
[[nodiscard]] Op functor_of([[maybe_unused]] int rank, [[maybe_unused]] data kind) {
  if constexpr (std::is_same_v<Op, modular_sum>) return modular_sum{1009};
  else if constexpr (requires(Op op) { op.factor; }) {
    using factor = decltype(Op{}.factor);
    return Op{kind == data::exact ? static_cast<factor>(rank % 3 + 1) : static_cast<factor>(0.1 * (rank + 1))};
  } else return Op{};
}

/// The bytes of an element, for a failure's text; and its value, if it is a number.
template <class T>
[[nodiscard]] std::string text_of(const T& value) {
  std::array<unsigned char, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(T));
  std::string text;
  for (const unsigned char b : bytes) {
    text += "0123456789abcdef"[b / 16];
    text += "0123456789abcdef"[b % 16];
  }
  if constexpr (std::is_convertible_v<T, double>) text += " (" + std::to_string(static_cast<double>(value)) + ")";
  return text;
}

}  // namespace oracle

template <>
struct cohort::identity<oracle::concatenate, oracle::word> {
  static constexpr oracle::word value{};
};
