// SPDX-License-Identifier: BSL-1.0
// Events that streams of several processes wait for: one's own, which is recorded here, and another's, which is waited
// for. Used by ipc_ranks.hpp.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/header.hpp>
#include <cohort/gpu/process_mark.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace cohort::detail {

/// An event, as other processes are told of it.
struct event_offer {
  process_mark process{};
  std::uint64_t address = 0;  ///< in that process
  cudaIpcEventHandle_t handle{};
};
static_assert(std::is_trivially_copyable_v<event_offer>);

class ipc_event {
 public:
  ipc_event() = default;
  /// Errors: what CUDA says
  [[nodiscard]] static ipc_event make() {
    ipc_event e;
    check_cuda(cudaEventCreateWithFlags(&e.handle_, cudaEventDisableTiming | cudaEventInterprocess), "cudaEventCreate");
    e.owned_ = true;
    return e;
  }
  [[nodiscard]] static ipc_event open(const event_offer& offer) {
    ipc_event e;
    if (offer.process == process_mark::own()) {
      e.handle_ = reinterpret_cast<cudaEvent_t>(offer.address);
      return e;
    }
    check_cuda(cudaIpcOpenEventHandle(&e.handle_, offer.handle), "cudaIpcOpenEventHandle");
    e.owned_ = true;
    return e;
  }
  ipc_event(ipc_event&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), owned_(std::exchange(other.owned_, false)) {}
  ipc_event& operator=(ipc_event&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~ipc_event() {
    if (owned_) static_cast<void>(cudaEventDestroy(handle_));
  }

  [[nodiscard]] event_offer offer() const {
    event_offer o;
    o.process = process_mark::own();
    o.address = reinterpret_cast<std::uint64_t>(handle_);
    check_cuda(cudaIpcGetEventHandle(&o.handle, handle_), "cudaIpcGetEventHandle");
    return o;
  }
  void record(cudaStream_t s) const { check_cuda(cudaEventRecord(handle_, s), "cudaEventRecord"); }
  /// What comes on `s` from now on waits for the last record that was issued, in whatever process.
  void hold_back(cudaStream_t s) const { check_cuda(cudaStreamWaitEvent(s, handle_, 0), "cudaStreamWaitEvent"); }
  /// Leaves the event to the end of the process: others may still wait for it, and its end under them is undefined.
  void abandon() noexcept { owned_ = false; }

 private:
  cudaEvent_t handle_ = nullptr;
  bool owned_ = false;
};

}  // namespace cohort::detail
