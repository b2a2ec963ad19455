// SPDX-License-Identifier: BSL-1.0
// An NCCL communicator that belongs to its object. Whatever takes too long in it can be ended: either it is made
// non-blocking, and every call is followed until NCCL is done with it or a deadline has passed; or its calls block, and it
// shares its flags with a second communicator, the brake, by which another thread can end them. NCCL hands each call of a
// non-blocking one to a thread that it starts for it, so that one that blocks takes a fifth of the host's time.
#pragma once

#include <cohort/nccl/check.hpp>
#include <cohort/nccl/header.hpp>
#include <cohort/nccl/late_work.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <string>
#include <utility>

#include <sched.h>

namespace cohort::detail {

class nccl_handle {
 public:
  using clock = std::chrono::steady_clock;

  nccl_handle() = default;
  explicit nccl_handle(ncclComm_t taken_over) noexcept : comm_(taken_over) {}
  nccl_handle(nccl_handle&& other) noexcept
      : comm_(std::exchange(other.comm_, nullptr)), brake_(other.brake_.exchange(nullptr)), blocks_(other.blocks_) {}
  nccl_handle& operator=(nccl_handle&& other) noexcept {
    std::swap(comm_, other.comm_);
    other.brake_ = brake_.exchange(other.brake_);
    std::swap(blocks_, other.blocks_);
    return *this;
  }
  ~nccl_handle() { abort(); }

  [[nodiscard]] ncclComm_t get() const noexcept { return comm_; }
  [[nodiscard]] explicit operator bool() const noexcept { return comm_ != nullptr; }

  /// Whether NCCL's calls return only when they are done: those of handles that braked() has made.
  [[nodiscard]] bool blocks() const noexcept { return blocks_; }

  /// The settings of what is made by NCCL: of the communicator itself, or of its brake.
  [[nodiscard]] static ncclConfig_t config(bool blocks) noexcept {
    ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
    c.blocking = 0;
    c.splitShare = blocks ? 1 : 0;
    return c;
  }

  /// A communicator of `size` ranks; the device must be current. Follows NCCL until all have come.
  ///
  /// Errors: timed_out naming the rank, or what NCCL says
  [[nodiscard]] static nccl_handle create(int size, const ncclUniqueId& id, int rank, bool blocks,
                                          clock::time_point until) {
    nccl_handle made;
    ncclConfig_t c = config(blocks);
    const std::string who = "rank " + std::to_string(rank) + " of " + std::to_string(size) + " waits for the others";
    const ncclResult_t code = ncclCommInitRankConfig(&made.comm_, size, id, rank, &c);
    made.settle(code, "ncclCommInitRankConfig", until, who);
    if (blocks) made.braked(rank, until, who);
    return made;
  }

  /// Makes a communicator of the same ranks whose calls block, and of this one its brake.
  ///
  /// Needs:  this one to be made with config(true); the same call on every rank
  /// Errors: as create
  void braked(int rank, clock::time_point until, const std::string& who) {
    ncclComm_t made = nullptr;
    ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
    c.blocking = 1;
    const ncclResult_t code = follow_making(ncclCommSplit(comm_, 0, rank, &made, &c), until);
    if (code != ncclSuccess || made == nullptr) {
      const std::string sentence = nccl_sentence(code, "ncclCommSplit", comm_) + " (" + who + ")";
      abort();  // which waits for NCCL's thread
      throw error(code == ncclInProgress ? errc::timed_out : nccl_condition(code), sentence);
    }
    brake_ = std::exchange(comm_, made);
    blocks_ = true;
  }
  /// Ends, from another thread, the calls of a communicator that blocks: they return with errors, on their own thread.
  void pull_brake() noexcept {
    pulling_ = true;
    if (const ncclComm_t brake = brake_.exchange(nullptr)) static_cast<void>(ncclCommAbort(brake));
    pulling_ = false;
  }

  /// Waits until NCCL is done with what it was asked.
  ///
  /// Result: the outcome, or ncclInProgress when the deadline has passed
  [[nodiscard]] ncclResult_t follow(ncclResult_t code, clock::time_point until) const noexcept {
    return follow(comm_, code, until);
  }
  /// The same of a call by which NCCL makes something: it answers ncclSuccess and goes on, on a thread of its own, and what it
  /// has made is there only when it is done; until then the place for it is NCCL's.
  [[nodiscard]] ncclResult_t follow_making(ncclResult_t code, clock::time_point until) const noexcept {
    return follow(code == ncclSuccess ? ncclInProgress : code, until);
  }
  /// follow(), with an error for any other outcome than success.
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
    const ncclComm_t left = std::exchange(comm_, nullptr);
    const ncclComm_t brake = brake_.exchange(nullptr);
    try {
      if (blocks_ ? finalize_beside(left, until) : finalize(left, until)) {
        if (brake != nullptr && finalize(brake, until)) static_cast<void>(ncclCommDestroy(brake));
        if (!blocks_) static_cast<void>(ncclCommDestroy(left));
        return;
      }
      late_work::begin([ending = blocks_ ? brake : left] { static_cast<void>(ncclCommAbort(ending)); });
    } catch (const std::exception&) {
      // It stays as it is: there is no thread that could wait for it.
    }
  }
  /// Ends the kernels that are in flight and frees it.
  void abort() noexcept {
    // What the two share is freed by one thread at a time: this one has the brake, or waits for who has it.
    const ncclComm_t brake = brake_.exchange(nullptr);
    while (pulling_) ::sched_yield();
    if (comm_ != nullptr) static_cast<void>(ncclCommAbort(std::exchange(comm_, nullptr)));
    if (brake != nullptr) static_cast<void>(ncclCommAbort(brake));
  }

 private:
  [[nodiscard]] static bool finalize(ncclComm_t comm, clock::time_point until) noexcept {
    return nccl_handle::follow(comm, ncclCommFinalize(comm), until) == ncclSuccess;
  }
  /// Of one that blocks, with all that is its own.
  ///
  /// Result: false if it is still at it; it goes on
  [[nodiscard]] static bool finalize_beside(ncclComm_t comm, clock::time_point until) {
    std::packaged_task<void()> work([comm] {
      if (ncclCommFinalize(comm) == ncclSuccess) static_cast<void>(ncclCommDestroy(comm));
      else static_cast<void>(ncclCommAbort(comm));
    });
    const std::future<void> over = work.get_future();
    late_work::begin(std::move(work));
    return over.wait_until(until) == std::future_status::ready;
  }
  [[nodiscard]] static ncclResult_t follow(ncclComm_t comm, ncclResult_t code, clock::time_point until) noexcept {
    while (code == ncclInProgress) {
      if (comm == nullptr || ncclCommGetAsyncError(comm, &code) != ncclSuccess) return ncclInternalError;
      if (code != ncclInProgress) break;
      if (clock::now() >= until) return ncclInProgress;
      ::sched_yield();
    }
    return code;
  }

  ncclComm_t comm_ = nullptr;
  std::atomic<ncclComm_t> brake_{nullptr};  // another thread may take it
  std::atomic<bool> pulling_{false};
  bool blocks_ = false;
};

}  // namespace cohort::detail
