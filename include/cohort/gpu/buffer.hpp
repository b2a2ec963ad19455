// SPDX-License-Identifier: BSL-1.0
// Memory that belongs to its object: device_buffer<T> on a device, pinned_buffer<T> on the host where a device reaches
// it. And copies between the host and a device, in the order of a stream.
#pragma once

#include <cohort/element.hpp>
#include <cohort/gpu/check.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/header.hpp>

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

template <class T>
[[nodiscard]] std::size_t bytes_of_elements(std::size_t count, const char* what) {
  if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
    throw error(errc::out_of_memory, std::string(what) + ": " + std::to_string(count) + " elements of " +
                                         std::to_string(sizeof(T)) + " bytes are more than memory has room for");
  }
  return count * sizeof(T);
}

}  // namespace detail

/// Elements in the memory of the device that is current when it is made.
///
/// Result:   `count` elements, not initialised
/// Errors:   out_of_memory naming the bytes and the device, bad_environment where there is none
/// Lifetime: freed with the object, which waits for all work of the device: keep buffers, and do not make one a step
template <element T>
class device_buffer {
 public:
  device_buffer() = default;
  explicit device_buffer(std::size_t count) : size_(count), device_(current_device().index) {
    const std::size_t bytes = detail::bytes_of_elements<T>(count, "device_buffer");
    if (bytes == 0) return;
    void* p = nullptr;
    const cudaError_t code = cudaMalloc(&p, bytes);
    if (code != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      throw error(detail::cuda_condition(code), "device_buffer of " + std::to_string(bytes) + " bytes on device " +
                                                    std::to_string(device_) + ": " +
                                                    detail::cuda_sentence(code, "cudaMalloc"));
    }
    data_ = static_cast<T*>(p);
  }
  device_buffer(device_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), device_(other.device_) {}
  device_buffer& operator=(device_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(device_, other.device_);
    return *this;
  }
  ~device_buffer() {
    if (data_ != nullptr) static_cast<void>(cudaFree(data_));
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] int device_index() const noexcept { return device_; }
  [[nodiscard]] device_span<T> device_view() noexcept { return {data_, size_}; }
  [[nodiscard]] device_span<const T> device_view() const noexcept { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  int device_ = 0;
};

/// Elements in memory of the host that devices reach without a copy through the driver.
///
/// Result: `count` elements, not initialised; a contiguous range
/// Errors: out_of_memory, bad_environment where there is no device
template <element T>
class pinned_buffer {
 public:
  pinned_buffer() = default;
  explicit pinned_buffer(std::size_t count) : size_(count) {
    const std::size_t bytes = detail::bytes_of_elements<T>(count, "pinned_buffer");
    if (bytes == 0) return;
    void* p = nullptr;
    detail::check_cuda(cudaHostAlloc(&p, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
                       "pinned_buffer: cudaHostAlloc of " + std::to_string(bytes) + " bytes");
    data_ = static_cast<T*>(p);
  }
  pinned_buffer(pinned_buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  pinned_buffer& operator=(pinned_buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~pinned_buffer() {
    if (data_ != nullptr) static_cast<void>(cudaFreeHost(data_));
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T* begin() const noexcept { return data_; }
  [[nodiscard]] T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return data_[i]; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Copies to a device, as a part of the stream's work.
///
/// Shapes:   as many elements on both sides
/// Lifetime: `to` is borrowed until the stream has come that far, and `from` too if it is pinned; pageable memory may
///           be reused at once
/// Errors:   invalid_argument (sizes), or what CUDA says
template <element T>
void copy_to_device(std::span<const std::type_identity_t<T>> from, device_span<T> to, cudaStream_t s) {
  if (from.size() != to.size()) {
    throw error(errc::invalid_argument, "copy_to_device: the device has " + std::to_string(to.size()) +
                                            " elements, expected " + std::to_string(from.size()));
  }
  detail::check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice, s),
                     "cudaMemcpyAsync to the device");
}

/// Copies from a device. Into pinned memory it is a part of the stream's work; for pageable memory the call waits.
///
/// Shapes: as many elements on both sides
/// Errors: invalid_argument (sizes), or what CUDA says
template <class T>
void copy_to_host(device_span<T> from, std::span<std::remove_const_t<T>> to, cudaStream_t s) {
  if (from.size() != to.size()) {
    throw error(errc::invalid_argument, "copy_to_host: the host has " + std::to_string(to.size()) +
                                            " elements, expected " + std::to_string(from.size()));
  }
  detail::check_cuda(cudaMemcpyAsync(to.data(), from.data(), to.size_bytes(), cudaMemcpyDeviceToHost, s),
                     "cudaMemcpyAsync to the host");
}

}  // namespace cohort
