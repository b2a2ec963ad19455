// SPDX-License-Identifier: BSL-1.0
// Tensors of other libraries as device buffers: what PyTorch, JAX, CuPy and others hand out by DLPack. Any struct with the
// members of DLTensor will do, so that no header of DLPack is needed here, and no version of it is asked for.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/element.hpp>
#include <cohort/error.hpp>
#include <cohort/float8.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/half.hpp>

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace cohort {

/// A DLTensor, of any version of DLPack.
template <class Tensor>
concept dlpack_tensor = requires(const Tensor& t) {
  { t.data } -> std::convertible_to<void*>;
  { static_cast<int>(t.device.device_type) } -> std::same_as<int>;
  { t.device.device_id } -> std::convertible_to<int>;
  { t.ndim } -> std::convertible_to<int>;
  { t.shape[0] } -> std::convertible_to<std::int64_t>;
  { t.strides[0] } -> std::convertible_to<std::int64_t>;
  { t.byte_offset } -> std::convertible_to<std::uint64_t>;
  { static_cast<int>(t.dtype.code) } -> std::same_as<int>;
  { static_cast<int>(t.dtype.bits) } -> std::same_as<int>;
  { static_cast<int>(t.dtype.lanes) } -> std::same_as<int>;
};

namespace detail {

// The numbers of dlpack.h, which are part of its binary interface.
enum class dlpack_device : int { cuda = 2, cuda_managed = 13 };
enum class dlpack_code : int {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  complex_number = 5,
  boolean = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12
};

template <class T>
[[nodiscard]] consteval dlpack_code dlpack_code_of() noexcept {
  if constexpr (std::same_as<T, bool>) return dlpack_code::boolean;
  else if constexpr (std::same_as<T, bfloat16>) return dlpack_code::bfloat;
  else if constexpr (std::same_as<T, float8_e4m3>) return dlpack_code::float8_e4m3fn;
  else if constexpr (std::same_as<T, float8_e5m2>) return dlpack_code::float8_e5m2;
  else if constexpr (std::same_as<T, half> || std::is_floating_point_v<T>) return dlpack_code::floating;
  else if constexpr (std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>)
    return dlpack_code::complex_number;
  else if constexpr (std::is_integral_v<T>)
    return std::is_signed_v<T> ? dlpack_code::signed_integer : dlpack_code::unsigned_integer;
  else static_assert(always_false<T>, "cohort: DLPack has no such element type: a tensor holds numbers");
}

}  // namespace detail

/// The elements of a tensor on a device, where they are.
///
/// Result:   all elements, in the order of memory
/// Needs:    `T` as the tensor has it; elements that lie behind each other without gaps
/// Errors:   invalid_argument naming what was expected and found: another element type, memory of the host or of another
///           kind of device, gaps
/// Lifetime: borrows the tensor's memory: keep the DLManagedTensor until the device has done with it
/// Cost:     copies nothing
template <element T, dlpack_tensor Tensor>
[[nodiscard]] device_span<T> from_dlpack(const Tensor& tensor) {
  const auto refuse = [](const std::string& text) { throw error(errc::invalid_argument, "from_dlpack: " + text); };
  const int kind = static_cast<int>(tensor.device.device_type);
  if (kind != static_cast<int>(detail::dlpack_device::cuda) &&
      kind != static_cast<int>(detail::dlpack_device::cuda_managed)) {
    refuse("the tensor is on a device of DLPack's type " + std::to_string(kind) +
           ", expected 2 (CUDA): move it to the GPU first");
  }
  constexpr int code = static_cast<int>(detail::dlpack_code_of<T>());
  constexpr int bits = static_cast<int>(sizeof(T)) * 8;
  if (static_cast<int>(tensor.dtype.code) != code || static_cast<int>(tensor.dtype.bits) != bits ||
      static_cast<int>(tensor.dtype.lanes) != 1) {
    refuse("its elements have code " + std::to_string(static_cast<int>(tensor.dtype.code)) + ", " +
           std::to_string(static_cast<int>(tensor.dtype.bits)) + " bits and " +
           std::to_string(static_cast<int>(tensor.dtype.lanes)) + " lanes, expected code " + std::to_string(code) +
           ", " + std::to_string(bits) + " bits and 1 lane, for " + element_type_name<T>());
  }
  if (tensor.ndim < 0) refuse("it has " + std::to_string(tensor.ndim) + " dimensions, expected 0 or more");
  std::size_t count = 1;
  for (int d = 0; d < tensor.ndim; ++d) {
    const std::int64_t extent = tensor.shape[d];
    if (extent < 0 || (extent > 0 && count > (std::size_t{1} << 60) / static_cast<std::size_t>(extent))) {
      refuse("dimension " + std::to_string(d) + " is " + std::to_string(extent) +
             ": expected what memory has room for");
    }
    count *= static_cast<std::size_t>(extent);
  }
  // Rows behind each other; the stride of a dimension of one element, or of no elements at all, means nothing.
  if (tensor.strides != nullptr && count > 0) {
    std::int64_t expected = 1;
    for (int d = tensor.ndim - 1; d >= 0; --d) {
      if (tensor.shape[d] != 1 && tensor.strides[d] != expected) {
        refuse("dimension " + std::to_string(d) + " has the stride " + std::to_string(tensor.strides[d]) +
               ", expected " + std::to_string(expected) + ": make the tensor contiguous first");
      }
      expected *= tensor.shape[d];
    }
  }
  auto* const bytes = static_cast<std::byte*>(static_cast<void*>(tensor.data));
  return {reinterpret_cast<T*>(count == 0 ? bytes : bytes + tensor.byte_offset), count};
}

}  // namespace cohort
