// SPDX-License-Identifier: BSL-1.0
// What a fold does with one element of each rank, and with a vector of 16 bytes of them: the arithmetic of gpu/fold.cuh,
// without the kernels.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/half.hpp>
#include <cohort/reduction.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cohort::detail {

/// Conversions to and from float in one instruction each, where the device has it; elsewhere those of the types.
template <class To, class From>
[[nodiscard]] COHORT_HOST_DEVICE inline To convert_element(const From& value) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::same_as<From, half> && std::same_as<To, float>) {
    return __half2float(__ushort_as_half(value.bits()));
  } else if constexpr (std::same_as<From, bfloat16> && std::same_as<To, float>) {
    return __uint_as_float(static_cast<unsigned>(value.bits()) << 16);
  } else if constexpr (std::same_as<From, float> && std::same_as<To, half>) {
    return half::from_bits(__half_as_ushort(__float2half_rn(value)));
  } else if constexpr (std::same_as<From, float> && std::same_as<To, bfloat16>) {
    return bfloat16::from_bits(__bfloat16_as_ushort(__float2bfloat16_rn(value)));
  } else {
    return static_cast<To>(value);
  }
#else
  return static_cast<To>(value);
#endif
}

/// One element's way through a reduction, in the type that the functor accumulates in.
template <class T, class Op>
struct fold_arithmetic {
  using applied_type = applied<Op, T>;
  using accumulator_type = accumulator_t<Op, T>;

  applied_type op;
  int ranks;

  [[nodiscard]] COHORT_HOST_DEVICE accumulator_type first(const T& own) const {
    using A = accumulator_type;
    if constexpr (has_prepare<applied_type, A>) {
      return static_cast<A>(op.prepare(convert_element<A>(own), ranks));
    } else if constexpr (has_prepare<applied_type, T>) {
      return convert_element<A>(static_cast<T>(op.prepare(own, ranks)));
    } else {
      return convert_element<A>(own);
    }
  }
  [[nodiscard]] COHORT_HOST_DEVICE accumulator_type next(const accumulator_type& so_far, const T& own) const {
    return static_cast<accumulator_type>(op(so_far, first(own)));
  }
  [[nodiscard]] COHORT_HOST_DEVICE T last(const accumulator_type& total) const {
    using A = accumulator_type;
    if constexpr (has_finish<applied_type, A>) {
      return convert_element<T>(static_cast<A>(op.finish(total, ranks)));
    } else if constexpr (has_finish<applied_type, T>) {
      return static_cast<T>(op.finish(convert_element<T>(total), ranks));
    } else {
      return convert_element<T>(total);
    }
  }
};

/// The functor that is applied for the caller's: sum for std::plus<>.
template <class T, class Op>
[[nodiscard]] applied<Op, T> make_applied(const Op& op) {
  if constexpr (std::same_as<applied<Op, T>, Op>) return op;
  else return applied<Op, T>{};
}

/// As many elements as 16 bytes hold, which the device loads and stores in one instruction. One, where their size does
/// not divide 16 or they cannot be made without a value.
template <class T>
inline constexpr int fold_width = (16 % sizeof(T) == 0 && std::is_default_constructible_v<T>)
                                      ? static_cast<int>(16 / sizeof(T))
                                      : 1;

template <class T>
struct alignas(fold_width<T> == 1 ? alignof(T) : 16) fold_vector {
  T lane[fold_width<T>];
};

template <class T>
[[nodiscard]] inline bool is_vector_aligned(const T* p) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(fold_vector<T>) == 0;
}

}  // namespace cohort::detail
