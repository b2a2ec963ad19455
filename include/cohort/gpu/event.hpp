// SPDX-License-Identifier: BSL-1.0
// Events without timing, and a pool of them: a stream waits for another, and making an event is dear. Used where a
// second stream takes part, and by the poller where there are no flags.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/header.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::detail {

class event {
 public:
  event() { check_cuda(cudaEventCreateWithFlags(&handle_, cudaEventDisableTiming), "cudaEventCreate"); }
  event(event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  event& operator=(event&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~event() {
    if (handle_ != nullptr) static_cast<void>(cudaEventDestroy(handle_));
  }
  void record(cudaStream_t s) const { check_cuda(cudaEventRecord(handle_, s), "cudaEventRecord"); }
  /// What comes on `s` from now on waits for the last record.
  void hold_back(cudaStream_t s) const { check_cuda(cudaStreamWaitEvent(s, handle_, 0), "cudaStreamWaitEvent"); }
  /// cudaSuccess, cudaErrorNotReady, or what has failed; cudaGetLastError() does not report it again.
  [[nodiscard]] cudaError_t query() const noexcept {
    const cudaError_t code = cudaEventQuery(handle_);
    if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
    return code;
  }

 private:
  cudaEvent_t handle_ = nullptr;
};

/// Events of one device that were given back. Any thread may take and give.
///
/// Needs: the device to be current where one is taken
class event_pool {
 public:
  [[nodiscard]] event take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        event e = std::move(free_.back());
        free_.pop_back();
        return e;
      }
    }
    return event();
  }
  void give(event e) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(e));
  }

 private:
  std::mutex mutex_{};
  std::vector<event> free_{};
};

}  // namespace cohort::detail
