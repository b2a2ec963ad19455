// SPDX-License-Identifier: BSL-1.0
// Element types as NCCL names them: the type in which NCCL computes, where it can; bytes for everything that is only
// moved.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/element.hpp>
#include <cohort/half.hpp>
#include <cohort/nccl/header.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace cohort::detail {

/// NCCL has no such type, so it can move these elements and not combine them.
inline constexpr ncclDataType_t no_nccl_type = ncclNumTypes;

template <class T>
[[nodiscard]] consteval ncclDataType_t nccl_type_of() noexcept {
  if constexpr (std::same_as<T, half>) return ncclFloat16;
  else if constexpr (std::same_as<T, bfloat16>) return ncclBfloat16;
  else if constexpr (std::same_as<T, float>) return ncclFloat32;
  else if constexpr (std::same_as<T, double>) return ncclFloat64;
  else if constexpr (std::same_as<T, bool> || !std::is_integral_v<T>) return no_nccl_type;
  else if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? ncclInt8 : ncclUint8;
  else if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? ncclInt32 : ncclUint32;
  else if constexpr (sizeof(T) == 8) return std::is_signed_v<T> ? ncclInt64 : ncclUint64;
  else return no_nccl_type;
}

/// Elements as what NCCL is given where it only moves them.
struct nccl_bytes {
  static constexpr ncclDataType_t type = ncclInt8;
  template <element T>
  [[nodiscard]] static constexpr std::size_t count(std::size_t elements) noexcept {
    return elements * sizeof(T);
  }
};

}  // namespace cohort::detail
