// SPDX-License-Identifier: BSL-1.0
// An NCCL communicator that belongs to its object. Made non-blocking, so that whatever takes too long can be ended:
// every call is followed until NCCL is done with it or a deadline has passed.
#pragma once

#include <cohort/nccl/check.hpp>
#include <cohort/nccl/header.hpp>

#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <sched.h>

namespace cohort::detail {

class nccl_handle {
 public:
  using clock = std::chrono::steady_clock;

  nccl_handle() = default;
  explicit nccl_handle(ncclComm_t taken_over) noexcept : comm_(taken_over) {}
  nccl_handle(nccl_handle&& other) noexcept : comm_(std::exchange(other.comm_, nullptr)) {}
  nccl_handle& operator=(nccl_handle&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~nccl_handle() { abort(); }

  [[nodiscard]] ncclComm_t get() const noexcept { return comm_; }
  [[nodiscard]] explicit operator bool() const noexcept { return comm_ != nullptr; }

  /// Every setting that this library needs; the caller may add to it.
  [[nodiscard]] static ncclConfig_t config() noexcept {
    ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
    c.blocking = 0;
    return c;
  }

  /// A communicator of `size` ranks; the device must be current. Follows NCCL until all have come.
  ///
  /// Errors: timed_out naming the rank, or what NCCL says
  [[nodiscard]] static nccl_handle create(int size, const ncclUniqueId& id, int rank, ncclConfig_t c,
                                          clock::time_point until) {
    nccl_handle made;
    const ncclResult_t code = ncclCommInitRankConfig(&made.comm_, size, id, rank, &c);
    made.settle(code, "ncclCommInitRankConfig", until,
                "rank " + std::to_string(rank) + " of " + std::to_string(size) + " waits for the others");
    return made;
  }

  /// Waits until NCCL is done with what it was asked.
  ///
  /// Result: the outcome, or ncclInProgress when the deadline has passed
  [[nodiscard]] ncclResult_t follow(ncclResult_t code, clock::time_point until) const noexcept {
    while (code == ncclInProgress) {
      if (comm_ == nullptr || ncclCommGetAsyncError(comm_, &code) != ncclSuccess) return ncclInternalError;
      if (code != ncclInProgress) break;
      if (clock::now() >= until) return ncclInProgress;
      ::sched_yield();
    }
    return code;
  }
  /// The same, with an error for any other outcome than success.
  void settle(ncclResult_t code, const char* function, clock::time_point until, const std::string& who) const {
    code = follow(code, until);
    if (code == ncclSuccess) return;
    if (code == ncclInProgress) {
      throw error(errc::timed_out, std::string(function) + " has not ended in time: " + who);
    }
    throw error(nccl_condition(code), nccl_sentence(code, function, comm_) + " (" + who + ")");
  }

  /// What NCCL has noticed by itself: a lost rank, a failed network.
  [[nodiscard]] ncclResult_t asynchronous_error() const noexcept {
    ncclResult_t code = ncclSuccess;
    if (comm_ == nullptr || ncclCommGetAsyncError(comm_, &code) != ncclSuccess) return ncclSuccess;
    return code;
  }

  /// Waits until all that was enqueued is done, and frees it. After the deadline it is aborted instead, on a thread of its
  /// own: NCCL waits for the end of every graph that holds calls of it, and aborting does too.
  void close(clock::time_point until) noexcept {
    if (comm_ == nullptr) return;
    if (follow(ncclCommFinalize(comm_), until) == ncclSuccess) {
      static_cast<void>(ncclCommDestroy(std::exchange(comm_, nullptr)));
      return;
    }
    const ncclComm_t left = std::exchange(comm_, nullptr);
    try {
      std::thread([left] { static_cast<void>(ncclCommAbort(left)); }).detach();
    } catch (const std::system_error&) {
      // It stays as it is: there is no thread that could wait for it.
    }
  }
  /// Ends the kernels that are in flight and frees it.
  void abort() noexcept {
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(comm_, nullptr)));
  }

 private:
  ncclComm_t comm_ = nullptr;
};

}  // namespace cohort::detail
