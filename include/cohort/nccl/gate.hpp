// SPDX-License-Identifier: BSL-1.0
// Who may be inside NCCL with one communicator: one thread of the user's, which may enter again, or the poller, which
// comes to abort. Two of the user's at once are an error. Used by nccl/party.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include <sched.h>

namespace cohort::detail {

class call_gate {
 public:
  /// Result: false if another thread is inside
  [[nodiscard]] bool enter() noexcept {
    const void* const me = this_thread();
    while (inside_.load(std::memory_order_relaxed) != me) {
      const void* now = nullptr;
      if (inside_.compare_exchange_strong(now, me, std::memory_order_acquire)) break;
      if (now != &inside_) return false;
      ::sched_yield();  // aborting takes a moment
    }
    if (++depth_ == 1) entries_.store(entries_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }
  void leave() noexcept {
    if (--depth_ == 0) inside_.store(nullptr, std::memory_order_release);
  }

  /// Result: false if a thread is inside
  [[nodiscard]] bool enter_to_abort() noexcept {
    const void* now = nullptr;
    return inside_.compare_exchange_strong(now, &inside_, std::memory_order_acquire);
  }
  void leave_after_abort() noexcept { inside_.store(nullptr, std::memory_order_release); }

  /// The number of the call that a thread of the user's is in, from 1; 0 for none. Any thread.
  [[nodiscard]] std::uint64_t call_inside() const noexcept {
    const void* const now = inside_.load(std::memory_order_acquire);
    return now == nullptr || now == &inside_ ? 0 : entries_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool is_inside() const noexcept { return inside_.load(std::memory_order_relaxed) == this_thread(); }

 private:
  [[nodiscard]] static const void* this_thread() noexcept {
    static thread_local const char me = 0;
    return &me;
  }
  std::atomic<const void*> inside_{nullptr};
  int depth_ = 0;  // of the thread inside
  std::atomic<std::uint64_t> entries_{0};
};

}  // namespace cohort::detail
