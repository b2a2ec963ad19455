// SPDX-License-Identifier: BSL-1.0
// The reduction functors that ship: plain objects with `T op(T, T)`, to be passed to any reducing function.
// reduction.hpp knows their properties and the std:: functors that mean the same.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/element.hpp>
#include <cohort/float8.hpp>
#include <cohort/half.hpp>

#include <bit>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cohort {

namespace detail {

template <class T>
inline constexpr bool is_complex = false;
template <class Real>
inline constexpr bool is_complex<std::complex<Real>> = true;

template <class T>
concept half_float = std::same_as<T, half> || std::same_as<T, bfloat16>;
template <class T>
concept storage_only = std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;
template <class T>
concept real_float = std::floating_point<T> || half_float<T>;
/// The types whose arithmetic is known here and commutative: everything built in but the 8-bit floats.
template <class T>
concept number = std::is_arithmetic_v<T> || half_float<T> || is_complex<T>;

/// What may stand for a T after a computation. A 16-bit float may be computed in float and is rounded once.
template <class Result, class T>
concept result_for =
    std::convertible_to<Result, T> || (half_float<T> && std::is_arithmetic_v<std::remove_cvref_t<Result>>);

// Unsigned, and at least as wide as int, so that neither a sum wraps with undefined behaviour nor the product of
// two 16-bit numbers, which are promoted to int.
template <class T>
using wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
template <class T>
concept wraps = std::integral<T> && !std::same_as<T, bool>;

template <class T>
concept addable = requires(const T& a, const T& b) { { a + b } -> result_for<T>; };
template <class T>
concept multipliable = requires(const T& a, const T& b) { { a * b } -> result_for<T>; };
template <class T>
concept ordered = requires(const T& a, const T& b) { { a < b } -> std::convertible_to<bool>; };
template <class T>
concept has_truth = is_complex<T> || requires(const T& a) { static_cast<bool>(a); };

template <class T>
[[nodiscard]] constexpr T add(const T& a, const T& b) {
  if constexpr (wraps<T>) return static_cast<T>(static_cast<wrapping<T>>(a) + static_cast<wrapping<T>>(b));
  else return static_cast<T>(a + b);
}

template <class T>
[[nodiscard]] constexpr T multiply(const T& a, const T& b) {
  if constexpr (wraps<T>) return static_cast<T>(static_cast<wrapping<T>>(a) * static_cast<wrapping<T>>(b));
  else return static_cast<T>(a * b);
}

// IEEE 754-2019 minimum and maximum, in masks: where choices stand in a row, for many operands, g++ makes jumps of
// conditional expressions and vectorises nothing. Equal floats have the same bits, but for zeros, of which or and and
// choose the sign; of unordered ones neither mask is set.
template <class T>
using bits_of = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;

template <class T>
[[nodiscard]] constexpr bits_of<T> mask_of(bool set) noexcept {
  return set ? static_cast<bits_of<T>>(-1) : bits_of<T>{0};
}
template <class T>
[[nodiscard]] constexpr T minimum(const T& a, const T& b) noexcept {
  constexpr bits_of<T> nan = std::bit_cast<bits_of<T>>(std::numeric_limits<T>::quiet_NaN());
  const bits_of<T> take_a = mask_of<T>(a <= b), take_b = mask_of<T>(b <= a);
  return std::bit_cast<T>((std::bit_cast<bits_of<T>>(a) & take_a) | (std::bit_cast<bits_of<T>>(b) & take_b) |
                          (nan & ~(take_a | take_b)));
}
template <class T>
[[nodiscard]] constexpr T maximum(const T& a, const T& b) noexcept {
  constexpr bits_of<T> nan = std::bit_cast<bits_of<T>>(std::numeric_limits<T>::quiet_NaN());
  const bits_of<T> take_a = mask_of<T>(a >= b), take_b = mask_of<T>(b >= a);
  return std::bit_cast<T>((std::bit_cast<bits_of<T>>(a) | ~take_a) & (std::bit_cast<bits_of<T>>(b) | ~take_b) &
                          (nan | take_a | take_b));
}
// long double has bits that mean nothing; these hold for it too.
template <>
[[nodiscard]] constexpr long double minimum(const long double& a, const long double& b) noexcept {
  if (a != a || b != b) return std::numeric_limits<long double>::quiet_NaN();
  return a < b ? a : b < a ? b : a == 0 ? -(-a - b) : a;
}
template <>
[[nodiscard]] constexpr long double maximum(const long double& a, const long double& b) noexcept {
  if (a != a || b != b) return std::numeric_limits<long double>::quiet_NaN();
  return a > b ? a : b > a ? b : a == 0 ? a + b : a;
}

template <class T>
[[nodiscard]] constexpr bool truth(const T& a) {
  if constexpr (is_complex<T>) return a != T{};
  else return static_cast<bool>(a);
}

}  // namespace detail

/// a + b. Integers wrap around; bool is "any"; 16-bit floats are added in float and rounded once.
struct sum {
  template <detail::addable T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return detail::add(a, b);
  }
};

/// a * b. Integers wrap around; bool is "all"; 16-bit floats are multiplied in float and rounded once.
struct product {
  template <detail::multipliable T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return detail::multiply(a, b);
  }
};

/// The smaller one, which for floats is IEEE 754-2019 `minimum`, the same bits whatever the order of the ranks: a NaN
/// on any rank gives the default quiet NaN, and -0 is below +0. Of a struct's equivalent values, the lower rank's.
struct min {
  template <detail::ordered T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    if constexpr (detail::half_float<T>) {
      return T((*this)(static_cast<float>(a), static_cast<float>(b)));
    } else if constexpr (std::floating_point<T>) {
      return detail::minimum(a, b);
    } else {
      return b < a ? b : a;
    }
  }
};

/// The larger one, which for floats is IEEE 754-2019 `maximum`: see min.
struct max {
  template <detail::ordered T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    if constexpr (detail::half_float<T>) {
      return T((*this)(static_cast<float>(a), static_cast<float>(b)));
    } else if constexpr (std::floating_point<T>) {
      return detail::maximum(a, b);
    } else {
      return a < b ? b : a;
    }
  }
};

namespace detail {

template <class T>
concept divisible_by_count = requires(const T& total, int ranks) { { total / ranks } -> std::convertible_to<T>; };
template <class T>
concept averageable =
    addable<T> && !std::is_integral_v<T> && !std::is_enum_v<T> && (number<T> || divisible_by_count<T>);

}  // namespace detail

/// The sum, divided by the number of ranks when it is complete; 16-bit floats are divided in float.
struct average {
  template <detail::averageable T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return detail::add(a, b);
  }
  template <detail::averageable T>
  [[nodiscard]] constexpr T finish(const T& total, int ranks) const {
    if constexpr (detail::half_float<T>) {
      return T(static_cast<float>(total) / static_cast<float>(ranks));
    } else if constexpr (detail::is_complex<T>) {
      return total / static_cast<typename T::value_type>(ranks);
    } else if constexpr (std::floating_point<T>) {
      return total / static_cast<T>(ranks);
    } else {
      return static_cast<T>(total / ranks);
    }
  }
};

/// a & b.
struct bit_and {
  template <class T>
    requires requires(const T& a, const T& b) { { a & b } -> std::convertible_to<T>; }
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(a & b);
  }
};

/// a | b.
struct bit_or {
  template <class T>
    requires requires(const T& a, const T& b) { { a | b } -> std::convertible_to<T>; }
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(a | b);
  }
};

/// a ^ b.
struct bit_xor {
  template <class T>
    requires requires(const T& a, const T& b) { { a ^ b } -> std::convertible_to<T>; }
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(a ^ b);
  }
};

/// T(1) if both are true (not zero), else T(0).
struct logical_and {
  template <detail::has_truth T>
    requires detail::number<T> || std::convertible_to<bool, T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(detail::truth(a) && detail::truth(b) ? 1 : 0);
  }
};

/// T(1) if either is true (not zero), else T(0).
struct logical_or {
  template <detail::has_truth T>
    requires detail::number<T> || std::convertible_to<bool, T>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(detail::truth(a) || detail::truth(b) ? 1 : 0);
  }
};

namespace detail {

template <class T, class Factor>
concept scalable_by = (wraps<T> && wraps<Factor>) ||
                      (real_float<T> && (std::is_arithmetic_v<Factor> || half_float<Factor>)) ||
                      (is_complex<T> && (std::is_arithmetic_v<Factor> || is_complex<Factor>)) ||
                      (!number<T> && requires(const T& a, const Factor& f) { { a * f } -> std::convertible_to<T>; });

}  // namespace detail

/// The sum of factor * x: each rank's contribution is multiplied by that rank's factor, once, before anything is
/// combined. The factor is taken in the type of the element; in float for 16-bit floats.
template <class Factor>
struct premultiplied_sum {
  Factor factor;

  template <detail::addable T>
    requires detail::scalable_by<T, Factor>
  [[nodiscard]] constexpr T operator()(const T& a, const T& b) const {
    return detail::add(a, b);
  }
  template <detail::addable T>
    requires detail::scalable_by<T, Factor>
  [[nodiscard]] constexpr T prepare(const T& own, int /*ranks*/) const {
    if constexpr (detail::wraps<T>) {
      return detail::multiply(own, static_cast<T>(factor));
    } else if constexpr (detail::half_float<T>) {
      return T(static_cast<float>(own) * static_cast<float>(factor));
    } else if constexpr (std::floating_point<T>) {
      return own * static_cast<T>(factor);
    } else if constexpr (detail::is_complex<T> && detail::is_complex<Factor>) {
      return own * static_cast<T>(factor);
    } else if constexpr (detail::is_complex<T>) {
      return own * static_cast<typename T::value_type>(factor);
    } else {
      return static_cast<T>(own * factor);
    }
  }
};
template <class Factor>
premultiplied_sum(Factor) -> premultiplied_sum<Factor>;

}  // namespace cohort
