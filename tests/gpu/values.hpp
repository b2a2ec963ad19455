// SPDX-License-Identifier: BSL-1.0
// Values for every element type, and the fold of them in plain code: what the kernels and the ranks of a device are held
// against.
#pragma once

#include <cohort/gpu/header.hpp>
#include <cohort/reduction.hpp>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

namespace gpu_test {

/// x -> a x + b: combines by composition, which does not commute. Twelve bytes, which no vector of 16 holds a number of.
struct affine {
  std::int32_t a, b, c;
};
struct compose {
  COHORT_HOST_DEVICE affine operator()(const affine& x, const affine& y) const {
    // Small numbers, so that nothing overflows.
    return {x.a * y.a % 101, (x.a * y.b + x.b) % 101, x.c - y.c};
  }
};
/// Associative, and nobody else's value may come through.
struct first_of {
  COHORT_HOST_DEVICE float operator()(float a, float) const { return a; }
};
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};

/// A number of rank r at place i: small integers and halves, which every float type holds exactly.
template <class T>
[[nodiscard]] T value_of(int r, std::size_t i) {
  const auto mixed = static_cast<std::uint32_t>((i * 2654435761u) ^ (static_cast<std::uint32_t>(r) * 40503u)) >> 7;
  const int small = static_cast<int>(mixed % 17) - 8;
  if constexpr (std::is_same_v<T, affine>) {
    return {small, static_cast<int>(mixed % 5), r};
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return {static_cast<float>(small) * 0.5f, static_cast<float>(mixed % 3)};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(small);
  } else {
    return T(static_cast<float>(small) * 0.5f);
  }
}
template <class T>
[[nodiscard]] std::vector<T> values(int r, std::size_t count) {
  std::vector<T> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(value_of<T>(r, i));
  return all;
}

/// What the ranks get: combined in their order, 16-bit floats in float and rounded once.
template <class T, class Op>
[[nodiscard]] std::vector<T> folded_in_order(const std::vector<std::vector<T>>& in, const Op& given) {
  using Applied = cohort::detail::applied<Op, T>;
  using A = cohort::accumulator_t<Op, T>;
  Applied op{};
  if constexpr (std::is_same_v<Applied, Op>) op = given;
  const int ranks = static_cast<int>(in.size());
  std::vector<T> out;
  for (std::size_t i = 0; i < in[0].size(); ++i) {
    const auto own = [&](std::size_t r) {
      const A x = static_cast<A>(static_cast<T>(in[r][i]));
      if constexpr (cohort::has_prepare<Applied, A>) return static_cast<A>(op.prepare(x, ranks));
      else return x;
    };
    A total = own(0);
    for (std::size_t r = 1; r < in.size(); ++r) total = static_cast<A>(op(total, own(r)));
    if constexpr (cohort::has_finish<Applied, A>) total = static_cast<A>(op.finish(total, ranks));
    out.push_back(static_cast<T>(total));
  }
  return out;
}

template <class T>
[[nodiscard]] bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}
/// Bit by bit; the first difference is printed.
template <class T>
[[nodiscard]] bool same(const std::vector<T>& found, const std::vector<T>& expected, const char* what, int ranks) {
  if (found.size() != expected.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const T f = found[i];
    const T e = expected[i];
    if (same_bits(f, e)) continue;
    std::printf("  %s, %d ranks, %zu elements: element %zu differs", what, ranks, found.size(), i);
    if constexpr (std::is_convertible_v<T, double>) {
      std::printf(": %.9g, expected %.9g", static_cast<double>(f), static_cast<double>(e));
    }
    std::printf("\n");
    return false;
  }
  return true;
}

}  // namespace gpu_test
