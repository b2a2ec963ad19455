// SPDX-License-Identifier: BSL-1.0
// The devices of this process: how many, which one a rank takes, which one is current, and on which one memory lies.
// Used by every call on a device, because CUDA's current device belongs to a thread and coroutines change threads.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/check.hpp>
#include <cohort/gpu/header.hpp>

#include <string>

namespace cohort {

/// Option of what opens something on a device: which one, as CUDA numbers them.
struct device {
  int index;
  constexpr explicit device(int i) noexcept : index(i) {}
};

/// How many devices this process sees.
///
/// Errors: bad_environment when it sees none
[[nodiscard]] inline int device_count() {
  int n = 0;
  detail::check_cuda(cudaGetDeviceCount(&n), "cudaGetDeviceCount");
  if (n < 1) throw error(errc::bad_environment, detail::cuda_sentence(cudaErrorNoDevice, "cudaGetDeviceCount"));
  return n;
}

/// The device that the rank with this number on its host takes: ranks go round the devices that the process sees. A
/// launcher that shows each rank one device only is right as well.
///
/// Errors: bad_environment when there is none
[[nodiscard]] inline device device_of_local_rank(int local_rank) {
  const int n = device_count();
  return device{(local_rank < 0 ? 0 : local_rank) % n};
}

[[nodiscard]] inline device current_device() {
  int index = 0;
  detail::check_cuda(cudaGetDevice(&index), "cudaGetDevice");
  return device{index};
}

/// Makes a device current on this thread for as long as it lives.
///
/// Needs:  to be on the stack, and no co_await while it lives
/// Errors: invalid_argument for a device that is not there, bad_environment where there is none
/// Cost:   nanoseconds when the device is current already
class device_scope {
 public:
  explicit device_scope(device d) {
    detail::check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ == d.index) return;
    detail::check_cuda(cudaSetDevice(d.index), "cudaSetDevice");
    changed_ = true;
  }
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;
  ~device_scope() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

namespace detail {

/// Where a pointer points to, in words, and the device if it is one's memory; -1 for memory of the host alone.
struct memory_place {
  int device = -1;
  std::string words{};
};

[[nodiscard]] inline memory_place place_of(const void* pointer) {
  cudaPointerAttributes a{};
  check_cuda(cudaPointerGetAttributes(&a, pointer), "cudaPointerGetAttributes");
  switch (a.type) {
    case cudaMemoryTypeDevice: return {a.device, "device " + std::to_string(a.device)};
    case cudaMemoryTypeManaged: return {a.device, "managed memory"};
    case cudaMemoryTypeHost: return {-1, "pinned memory of the host"};
    default: return {-1, "pageable memory of the host"};
  }
}

}  // namespace detail
}  // namespace cohort
