// SPDX-License-Identifier: BSL-1.0
// Device memory of another process on the same GPU: how a buffer is offered, and the mapping of one that was. Used by
// shared_buffer.hpp.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/check.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/excuse.hpp>
#include <cohort/gpu/header.hpp>
#include <cohort/gpu/process_mark.hpp>

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort::detail {

/// A buffer, as other processes are told of it.
struct memory_offer : excuse {
  process_mark process{};
  std::uint64_t address = 0;  ///< in that process
  cudaIpcMemHandle_t handle{};
  std::uint64_t offset = 0;  ///< of the buffer in what the handle opens
  std::uint64_t bytes = 0;   ///< 0: there is nothing to open
};
static_assert(std::is_trivially_copyable_v<memory_offer>);

/// The driver's cuPointerGetAttribute, asked of the runtime by name, so that no program links the driver.
template <class T>
[[nodiscard]] T pointer_attribute(CUpointer_attribute which, const void* pointer) {
  using function = CUresult(CUDAAPI*)(void*, CUpointer_attribute, CUdeviceptr);
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned int signature_of = 11070;
  check_cuda(cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &found, signature_of, cudaEnableDefault, &how),
             "cudaGetDriverEntryPointByVersion");
  if (how != cudaDriverEntryPointSuccess || found == nullptr) {
    throw error(errc::bad_environment, "the driver has no cuPointerGetAttribute: install a newer one");
  }
  T value{};
  const CUresult code = reinterpret_cast<function>(found)(&value, which, reinterpret_cast<CUdeviceptr>(pointer));
  if (code != CUDA_SUCCESS) {
    throw error(errc::io_error, "cuPointerGetAttribute: driver code " + std::to_string(static_cast<int>(code)));
  }
  return value;
}

/// What this process can say of `bytes` from `data` on.
///
/// Errors: invalid_argument for memory that no other process can open, saying what it is and what to take instead; what
///         CUDA says
[[nodiscard]] inline memory_offer offer_memory(const void* data, std::size_t bytes, int device_index) {
  memory_offer offer;
  offer.process = process_mark::own();
  if (bytes == 0) return offer;
  const auto refuse = [](const std::string& what) {
    throw error(errc::invalid_argument,
                "the buffer is " + what +
                    ", which no other process can open: allocate it by cudaMalloc or as a device_buffer, or stage the "
                    "call through the host (host_staging)");
  };
  if (data == nullptr) refuse("a null pointer");
  cudaPointerAttributes a{};
  check_cuda(cudaPointerGetAttributes(&a, data), "cudaPointerGetAttributes");
  if (a.type != cudaMemoryTypeDevice) refuse(place_of(data).words);
  if (a.device != device_index) {
    throw error(errc::invalid_argument, "the buffer is in the memory of device " + std::to_string(a.device) +
                                            ", expected that of device " + std::to_string(device_index) +
                                            ", which the ranks share");
  }
  if (pointer_attribute<unsigned int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, data) == 0) {
    refuse("memory of a pool (cudaMallocAsync) or virtual memory (ncclMemAlloc, make_window)");
  }
  const auto start = pointer_attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, data);
  check_cuda(cudaIpcGetMemHandle(&offer.handle, reinterpret_cast<void*>(start)), "cudaIpcGetMemHandle");
  offer.address = reinterpret_cast<std::uint64_t>(data);
  offer.offset = offer.address - start;
  offer.bytes = bytes;
  return offer;
}

/// A buffer that was offered, by its address here; the mapping lasts as long as the object. A buffer of this process
/// itself needs none.
///
/// Lifetime: to be destroyed before the other process frees the buffer, and after all work that reads it
class opened_memory {
 public:
  opened_memory() = default;
  /// Errors: what CUDA says
  explicit opened_memory(const memory_offer& offer) {
    if (offer.bytes == 0) return;
    if (offer.process == process_mark::own()) {
      address_ = reinterpret_cast<void*>(offer.address);
      return;
    }
    check_cuda(cudaIpcOpenMemHandle(&mapped_, offer.handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    address_ = static_cast<std::byte*>(mapped_) + offer.offset;
  }
  opened_memory(opened_memory&& other) noexcept
      : mapped_(std::exchange(other.mapped_, nullptr)), address_(std::exchange(other.address_, nullptr)) {}
  opened_memory& operator=(opened_memory&& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~opened_memory() {
    if (mapped_ != nullptr) static_cast<void>(cudaIpcCloseMemHandle(mapped_));
  }

  [[nodiscard]] void* address() const noexcept { return address_; }

 private:
  void* mapped_ = nullptr;
  void* address_ = nullptr;
};

}  // namespace cohort::detail
