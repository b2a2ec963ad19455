// SPDX-License-Identifier: BSL-1.0
// 8-bit floats with one scale for each block of elements: the rule by which floats become codes and codes become floats.
// For host and device, with the same bits on both; gpu/quantised_fold.cuh has the kernels, and reductions use it on the
// wire.
#pragma once

#include <cohort/float8.hpp>
#include <cohort/gpu/header.hpp>

#if defined(__CUDACC__)
#include <cuda_fp8.h>
#endif

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace cohort {

/// The two formats of a code.
template <class T>
concept float8 = std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;

/// Blocks of `Elements` floats as codes with one scale, a power of two that travels as one byte (2^(byte - 127)).
///
/// Result: the scale is the smallest with which the largest finite magnitude of the block does not exceed the format's
///         largest number. Each element is divided by it and rounded once, to nearest, ties to even; being a power of two
///         it costs no rounding itself, neither then nor when it is multiplied back, and a block that has been rounded is
///         not changed when it is rounded again. A block of zeros stays zeros, with their signs.
///         Nothing that is wrong is hidden: a NaN stays one (its sign and payload go), an infinity stays one in e5m2 and
///         becomes NaN in e4m3, which has none; neither touches the other elements of the block
/// Errors: of an element x in a block of scale s: at most |x| / 16 (e4m3) or |x| / 8 (e5m2), or, if that is more, half of
///         the smallest code times s, which is about 2^-18 (e4m3) or 2^-32 (e5m2) of the largest magnitude. Two ends
///         are cut: finite magnitudes above 1.75 * 2^127 become that number, and scales go no lower than that all codes
///         are normal floats, so that magnitudes below 2^-127 become zero
/// Cost:   Elements + 1 bytes for a block
/// Source: Open Compute Project, OCP 8-bit Floating Point Specification, 2023, and Microscaling Formats, 2023 (the scale)
template <float8 Code = float8_e4m3, int Elements = 128>
struct float8_blocks {
  static_assert(Elements >= 32 && Elements <= 256 && (Elements & (Elements - 1)) == 0,
                "cohort: a block has 32, 64, 128 or 256 elements: the lanes of a warp share it");
  using code_type = Code;
  static constexpr int elements = Elements;
};

namespace detail {

/// What the rule needs to know of a format. Both have 1.75 * 2^top as their largest number.
template <float8 Code>
struct float8_rule {
  static constexpr int top = std::same_as<Code, float8_e4m3> ? 8 : 15;
  static constexpr int smallest = std::same_as<Code, float8_e4m3> ? -9 : -16;  // exponent of the smallest code
  static constexpr int lowest_scale = -126 - smallest;  // the smallest code is a normal float, whatever flushes others
  static constexpr int highest_scale = 127 - top;       // the largest code is finite
  static constexpr std::uint8_t nan = 0x7f;
};

[[nodiscard]] COHORT_HOST_DEVICE constexpr bool is_finite_float(std::uint32_t bits) noexcept {
  return (bits & 0x7fffffffu) < 0x7f800000u;
}

/// A number that orders magnitudes, so that the largest of a block is found by integers, in any order: 0 for what is no
/// number.
[[nodiscard]] COHORT_HOST_DEVICE constexpr std::uint32_t finite_magnitude(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return is_finite_float(bits) ? bits & 0x7fffffffu : 0u;
}

/// The scale of a block, of which finite_magnitude() was at most `largest`.
template <float8 Code>
[[nodiscard]] COHORT_HOST_DEVICE constexpr std::uint8_t float8_scale(std::uint32_t largest) noexcept {
  using rule = float8_rule<Code>;
  // A mantissa above that of 1.75 carries into the exponent: those need the next scale.
  const int exponent = static_cast<int>((largest + 0x1fffffu) >> 23) - 127;
  int scale = exponent - rule::top;
  if (scale < rule::lowest_scale) scale = rule::lowest_scale;
  if (scale > rule::highest_scale) scale = rule::highest_scale;
  return static_cast<std::uint8_t>(scale + 127);
}

/// The code of an element.
template <float8 Code>
[[nodiscard]] COHORT_HOST_DEVICE constexpr std::uint8_t encode_float8(float x, std::uint8_t scale) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (!is_finite_float(bits)) {
    if constexpr (std::same_as<Code, float8_e5m2>) {
      if ((bits & 0x7fffffu) == 0) return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | 0x7cu);
    }
    return float8_rule<Code>::nan;
  }
  const float scaled = x * std::bit_cast<float>((254u - scale) << 23);  // by 2^-(scale - 127), a normal number
#if defined(__CUDA_ARCH__)
  constexpr auto format = std::same_as<Code, float8_e4m3> ? __NV_E4M3 : __NV_E5M2;
  return __nv_cvt_float_to_fp8(scaled, __NV_SATFINITE, format);
#else
  return Code::saturated(scaled).bits();
#endif
}

/// The element that a code stands for; exact.
template <float8 Code>
[[nodiscard]] COHORT_HOST_DEVICE constexpr float decode_float8(std::uint8_t code, std::uint8_t scale) noexcept {
  const float factor = std::bit_cast<float>(static_cast<std::uint32_t>(scale) << 23);
#if defined(__CUDA_ARCH__)
  constexpr auto format = std::same_as<Code, float8_e4m3> ? __NV_E4M3 : __NV_E5M2;
  return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, format))) * factor;
#else
  return static_cast<float>(Code::from_bits(code)) * factor;
#endif
}

}  // namespace detail
}  // namespace cohort
