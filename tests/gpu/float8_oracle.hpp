// SPDX-License-Identifier: BSL-1.0
// The rule of gpu/block_float8.hpp written a second time, by search and in double: the nearest of all numbers that the
// format has, the smallest scale that fits. What kernels and the code that they call are held against.
#pragma once

#include <cohort/gpu/block_float8.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace gpu_test {

/// Value and code of all finite numbers from zero up, in order.
template <class Code>
[[nodiscard]] inline const std::vector<double>& float8_numbers() {
  static const std::vector<double> all = [] {
    constexpr bool e4m3 = std::is_same_v<Code, cohort::float8_e4m3>;
    constexpr int mantissa = e4m3 ? 3 : 2;
    constexpr int bias = e4m3 ? 7 : 15;
    constexpr int last = e4m3 ? 0x7e : 0x7b;
    std::vector<double> v;
    for (int code = 0; code <= last; ++code) {
      const int exponent = code >> mantissa;
      const double fraction = static_cast<double>(code & ((1 << mantissa) - 1)) / (1 << mantissa);
      v.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
    }
    return v;
  }();
  return all;
}

/// The power of two that is the scale of a block.
template <class Code>
[[nodiscard]] int float8_exponent(const std::vector<float>& block) {
  double largest = 0;
  for (const float x : block)
    largest = std::isfinite(x) ? std::max(largest, std::abs(static_cast<double>(x))) : largest;
  const double most = float8_numbers<Code>().back();
  const double smallest = float8_numbers<Code>()[1];
  int e = -200;
  while (std::ldexp(smallest, e) < static_cast<double>(std::numeric_limits<float>::min())) ++e;
  while (std::ldexp(most, e) < largest &&
         std::ldexp(most, e + 1) <= static_cast<double>(std::numeric_limits<float>::max()))
    ++e;
  return e;
}

/// What an element is after it has been a code.
template <class Code>
[[nodiscard]] float float8_rounded(float x, int exponent) {
  if (std::isnan(x)) return std::numeric_limits<float>::quiet_NaN();
  if (std::isinf(x)) return std::is_same_v<Code, cohort::float8_e5m2> ? x : std::numeric_limits<float>::quiet_NaN();
  const std::vector<double>& numbers = float8_numbers<Code>();
  const double wanted = std::ldexp(std::abs(static_cast<double>(x)), -exponent);
  const auto above = std::lower_bound(numbers.begin(), numbers.end(), wanted) - numbers.begin();
  std::size_t best = std::min(static_cast<std::size_t>(above), numbers.size() - 1);
  if (best > 0) {
    const double up = numbers[best] - wanted;
    const double down = wanted - numbers[best - 1];
    if (down < up || (down == up && best % 2 == 1)) --best;
  }
  return static_cast<float>(std::copysign(std::ldexp(numbers[best], exponent), static_cast<double>(x)));
}

/// The rule for a vector.
template <class Blocks>
[[nodiscard]] std::vector<float> float8_rounded(const std::vector<float>& all) {
  std::vector<float> out;
  for (std::size_t at = 0; at < all.size(); at += Blocks::elements) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
    const std::vector<float> block(
        first, first + static_cast<std::ptrdiff_t>(std::min<std::size_t>(Blocks::elements, all.size() - at)));
    const int e = float8_exponent<typename Blocks::code_type>(block);
    for (const float x : block) out.push_back(float8_rounded<typename Blocks::code_type>(x, e));
  }
  return out;
}

/// What a quantised all_reduce by addition gives, divided by `divisor` before it is rounded for the second time.
template <class Blocks>
[[nodiscard]] std::vector<float> float8_summed(const std::vector<std::vector<float>>& in, float divisor) {
  std::vector<float> total = float8_rounded<Blocks>(in[0]);
  for (std::size_t r = 1; r < in.size(); ++r) {
    const std::vector<float> next = float8_rounded<Blocks>(in[r]);
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += next[i];
  }
  for (float& x : total) x /= divisor;
  return float8_rounded<Blocks>(total);
}

/// Numbers of very different size, in blocks of which some are zeros and some have one element alone.
[[nodiscard]] inline std::vector<float> float8_values(int rank, std::size_t count) {
  std::vector<float> v(count);
  std::uint64_t state = 0x9e3779b97f4a7c15u * static_cast<std::uint64_t>(rank + 1);
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto mixed = static_cast<std::uint32_t>(state >> 33);
    const float fraction = 1.0f + static_cast<float>(mixed & 0xfffffu) / 1048576.0f;
    const float x = std::ldexp(fraction, static_cast<int>(mixed >> 20 & 15u) - 12);
    const std::size_t block = i / 128 % 7;
    v[i] = block == 3 || (block == 5 && i % 128 != 17) ? 0.0f : mixed >> 24 & 1u ? -x : x;
  }
  return v;
}

}  // namespace gpu_test
