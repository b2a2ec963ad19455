// SPDX-License-Identifier: BSL-1.0
// The rule of gpu/block_float8.hpp, on the host: every code, every scale, floats of every size, NVIDIA's own conversions,
// the bound of the error, and what is no number.
#pragma once

#include "float8_oracle.hpp"
#include "support.hpp"
#include "values.hpp"

#include <cuda_fp8.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpu_test {

template <class Code>
inline constexpr auto nvidia_format = std::is_same_v<Code, cohort::float8_e4m3> ? __NV_E4M3 : __NV_E5M2;

/// Every code at every scale: the value is exact, and NVIDIA's; encoding it gives the code back.
template <class Code>
void every_code() {
  using cohort::detail::decode_float8;
  using cohort::detail::encode_float8;
  using rule = cohort::detail::float8_rule<Code>;
  bool exact = true;
  bool back = true;
  bool nvidia = true;
  for (int code = 0; code < 256; ++code) {
    const auto c = static_cast<std::uint8_t>(code);
    const float theirs = static_cast<float>(__half(__nv_cvt_fp8_to_halfraw(c, nvidia_format<Code>)));
    const float ours = decode_float8<Code>(c, 127);
    nvidia = nvidia && (std::isnan(theirs) ? std::isnan(ours) : same_bits(ours, theirs));
    for (int e = rule::lowest_scale; e <= rule::highest_scale; ++e) {
      const auto scale = static_cast<std::uint8_t>(e + 127);
      const float x = decode_float8<Code>(c, scale);
      if (!std::isfinite(ours)) {
        exact = exact && (std::isnan(ours) ? std::isnan(x) : same_bits(x, ours));
        back = back && encode_float8<Code>(x, scale) == (std::isnan(ours) ? 0x7f : c);
        continue;
      }
      exact = exact && static_cast<double>(x) == std::ldexp(static_cast<double>(ours), e) &&
              std::signbit(x) == (code >= 128) && (x == 0 || std::fpclassify(x) == FP_NORMAL);
      back = back && encode_float8<Code>(x, scale) == c;
    }
  }
  EXPECT(exact);
  EXPECT(back);
  EXPECT(nvidia);
}

/// Floats of every exponent and of all upper mantissas, beside every tie: NVIDIA's code where there is a number.
template <class Code>
void every_float() {
  using cohort::detail::encode_float8;
  long long wrong = 0;
  for (std::uint32_t high = 0; high < 0x10000u; ++high) {
    for (const std::uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float x = std::bit_cast<float>(high << 16 | low);
      const std::uint8_t found = encode_float8<Code>(x, 127);
      if (std::isfinite(x)) {
        wrong += found != __nv_cvt_float_to_fp8(x, __NV_SATFINITE, nvidia_format<Code>);
        wrong += !same_bits(cohort::detail::decode_float8<Code>(found, 127), float8_rounded<Code>(x, 0));
      } else if (std::isnan(x) || std::is_same_v<Code, cohort::float8_e4m3>) {
        wrong += found != 0x7f;
      } else {
        wrong += found != (x < 0 ? 0xfc : 0x7c);
      }
    }
  }
  EXPECT(wrong == 0);
}

/// The scale of every magnitude, beside the places where it changes.
template <class Code>
void every_scale() {
  using cohort::detail::finite_magnitude;
  long long wrong = 0;
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const std::uint32_t mantissa : {0u, 1u, 0x400000u, 0x5fffffu, 0x600000u, 0x600001u, 0x7fffffu}) {
      const float x = std::bit_cast<float>(exponent << 23 | mantissa);
      const int found = cohort::detail::float8_scale<Code>(finite_magnitude(-x)) - 127;
      wrong += found != float8_exponent<Code>({x});
    }
  }
  EXPECT(wrong == 0);
  EXPECT(finite_magnitude(std::numeric_limits<float>::infinity()) == 0);
  EXPECT(finite_magnitude(-std::numeric_limits<float>::quiet_NaN()) == 0);
  static_assert(cohort::detail::finite_magnitude(-1.0f) == 0x3f800000u);
}

/// Of vectors: the bound that the rule states, and that a second rounding changes nothing.
template <class Blocks>
void error_bound() {
  using code = typename Blocks::code_type;
  const double relative = std::is_same_v<code, cohort::float8_e4m3> ? 1.0 / 16 : 1.0 / 8;
  for (const float size : {1.0f, 1e-30f, 1e30f, 3e-38f}) {
    std::vector<float> x = float8_values(3, 5000);
    for (float& each : x) each *= size;
    const std::vector<float> once = float8_rounded<Blocks>(x);
    EXPECT(float8_rounded<Blocks>(once) == once);
    bool within = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t first = i / Blocks::elements * Blocks::elements;
      const std::size_t past = std::min(x.size(), first + Blocks::elements);
      const int e = float8_exponent<code>(
          {x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(past)});
      const double half_a_code = std::ldexp(float8_numbers<code>()[1], e - 1);
      const double error = std::abs(static_cast<double>(once[i]) - static_cast<double>(x[i]));
      within = within && error <= std::max(relative * std::abs(static_cast<double>(x[i])), half_a_code);
    }
    EXPECT(within);
  }
}

/// The result of ranks against sums in double: two roundings of relative size 1/16 or 1/8, of the contributions and of the
/// sum, and what the smallest codes lose.
template <class Blocks>
void error_of_sums() {
  using code = typename Blocks::code_type;
  const double relative = std::is_same_v<code, cohort::float8_e4m3> ? 1.0 / 16 : 1.0 / 8;
  const double smallest = std::is_same_v<code, cohort::float8_e4m3> ? 0x1p-17 : 0x1p-31;
  for (const int ranks : {1, 2, 8}) {
    std::vector<std::vector<float>> in;
    for (int r = 0; r < ranks; ++r) in.push_back(float8_values(r, 3000));
    const std::vector<float> found = float8_summed<Blocks>(in, 1.0f);
    bool within = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
      double sum = 0;
      double magnitudes = 0;
      double largest = 0;
      const std::size_t first = i / Blocks::elements * Blocks::elements;
      for (const auto& each : in) {
        sum += static_cast<double>(each[i]);
        magnitudes += std::abs(static_cast<double>(each[i]));
        for (std::size_t k = first; k < std::min(each.size(), first + Blocks::elements); ++k) {
          largest = std::max(largest, std::abs(static_cast<double>(each[k])));
        }
      }
      const double lost = 2 * ranks * smallest * largest;
      within = within && std::abs(static_cast<double>(found[i]) - sum) <=
                             (1 + relative) * (relative * magnitudes + lost) + relative * std::abs(sum) + lost;
    }
    EXPECT(within);
  }
}

/// A NaN and an infinity stay where they are, and zeros keep their signs.
template <class Blocks>
void no_numbers() {
  using code = typename Blocks::code_type;
  std::vector<float> x(Blocks::elements, -0.0f);
  EXPECT(std::signbit(float8_rounded<Blocks>(x)[5]));
  const std::uint8_t of_zeros = cohort::detail::float8_scale<code>(0);
  EXPECT(cohort::detail::encode_float8<code>(-0.0f, of_zeros) == 0x80);
  EXPECT(cohort::detail::encode_float8<code>(0.0f, of_zeros) == 0);
  x.assign(Blocks::elements, 1.5f);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[9] = -std::numeric_limits<float>::infinity();
  x[11] = std::numeric_limits<float>::max();
  std::uint32_t largest = 0;
  for (const float each : x) largest = std::max(largest, cohort::detail::finite_magnitude(each));
  const std::uint8_t scale = cohort::detail::float8_scale<code>(largest);
  const auto after = [&](std::size_t i) {
    return cohort::detail::decode_float8<code>(cohort::detail::encode_float8<code>(x[i], scale), scale);
  };
  EXPECT(std::isnan(after(3)));
  if constexpr (std::is_same_v<code, cohort::float8_e5m2>) EXPECT(after(9) == -std::numeric_limits<float>::infinity());
  else EXPECT(std::isnan(after(9)));
  EXPECT(after(11) == 1.75f * 0x1p127f);  // what is too large for the largest scale
}

template <class Blocks>
void float8_rule() {
  using code = typename Blocks::code_type;
  every_code<code>();
  every_float<code>();
  every_scale<code>();
  error_bound<Blocks>();
  error_of_sums<Blocks>();
  no_numbers<Blocks>();
}

}  // namespace gpu_test
