// SPDX-License-Identifier: BSL-1.0
// What the ranks of a measurement hold, and what must come out, computed without the library: small numbers, so that
// every result is exact in every element type.
#pragma once

#include "options.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace cohort::tool {

/// A functor that the library has no name for: what users write.
struct user_functor {
  static constexpr bool commutative = true;
  template <class T>
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
};

inline constexpr int premultiplier = 2;

/// What `rank` contributes at `index`.
[[nodiscard]] inline std::int64_t input_value(functor_kind functor, int rank, std::size_t index) {
  const auto r = static_cast<std::size_t>(rank);
  switch (functor) {
    case functor_kind::product: return index % 7 == r % 7 ? 2 : 1;
    case functor_kind::bit_and:
    case functor_kind::bit_or:
    case functor_kind::bit_xor: return static_cast<std::int64_t>((index * 5 + r * 3) % 128);
    case functor_kind::logical_and:
    case functor_kind::logical_or: return static_cast<std::int64_t>((index + r) % 3);
    default: return static_cast<std::int64_t>((index * 3 + r * 5) % 11) - 5;
  }
}

/// What ranks first .. last give together at `index`.
[[nodiscard]] inline double combined_value(functor_kind functor, int first, int last, std::size_t index) {
  std::int64_t total = input_value(functor, first, index);  // of one rank alone: combined with nothing
  for (int r = first + 1; r <= last; ++r) {
    const std::int64_t next = input_value(functor, r, index);
    switch (functor) {
      case functor_kind::product: total *= next; break;
      case functor_kind::min: total = std::min(total, next); break;
      case functor_kind::max: total = std::max(total, next); break;
      case functor_kind::bit_and: total &= next; break;
      case functor_kind::bit_or: total |= next; break;
      case functor_kind::bit_xor: total ^= next; break;
      case functor_kind::logical_and: total = total != 0 && next != 0; break;
      case functor_kind::logical_or: total = total != 0 || next != 0; break;
      default: total += next; break;
    }
  }
  if (functor == functor_kind::average) return static_cast<double>(total) / (last - first + 1);
  if (functor == functor_kind::premultiplied_sum) total *= premultiplier;
  return static_cast<double>(total);
}

/// That number as an element; integers wrap around as the library's do.
template <class T>
[[nodiscard]] T element_of(double value) {
  if constexpr (std::integral<T>) return static_cast<T>(static_cast<std::int64_t>(value));
  else return static_cast<T>(value);
}

}  // namespace cohort::tool
