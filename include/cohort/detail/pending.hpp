// SPDX-License-Identifier: BSL-1.0
// What one thread waits for and another one ends: a coroutine that sleeps on it, a thread that blocks, or a function
// that is called. Used by the calls of async_store and by what waits for a device.
#pragma once

#include <cohort/detail/inbox.hpp>

#include <condition_variable>
#include <coroutine>
#include <functional>
#include <mutex>
#include <utility>

namespace cohort::detail {

/// Lock order: only `mutex_`, and no user code runs with it held. How it ended is the derived class's, under that lock.
class pending : public sleeper {
 public:
  // --- who waits for it
  [[nodiscard]] bool done() const {
    const std::lock_guard lock(mutex_);
    return done_;
  }
  void block() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
  }
  /// Calls `wake` once when it is done, on whatever thread ends it. False: it is done already.
  [[nodiscard]] bool on_complete(std::function<void()> wake) {
    const std::lock_guard lock(mutex_);
    if (done_) return false;
    wake_ = std::move(wake);
    return true;
  }
  /// Nobody sleeps on it any more.
  void forget_waker() {
    std::function<void()> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(wake_);
    waiter_ = nullptr;
  }

  // --- a coroutine that sleeps on it; on the coroutine's own thread
  void sleeps(std::coroutine_handle<> who) noexcept {
    const std::lock_guard lock(mutex_);
    waiter_ = who;
  }
  void resume() override {
    std::coroutine_handle<> who;
    {
      const std::lock_guard lock(mutex_);
      who = std::exchange(waiter_, nullptr);
    }
    if (who) who.resume();
  }

 protected:
  pending() = default;
  ~pending() override = default;

  /// Ends it, on the thread that sleeps on it, and calls nobody for it. False: it was done already.
  bool end_awake() {
    std::function<void()> dropped;
    const std::lock_guard lock(mutex_);
    if (done_) return false;
    done_ = true;
    dropped.swap(wake_);
    changed_.notify_all();
    return true;
  }

  /// Ends it, after `note_outcome` under the lock; then wakes who waits. False: it was done already.
  template <class Note>
  bool end(Note note_outcome) {
    std::function<void()> wake;
    {
      const std::lock_guard lock(mutex_);
      if (done_) return false;
      done_ = true;
      note_outcome();
      wake.swap(wake_);
      changed_.notify_all();
    }
    if (wake) wake();
    return true;
  }

  mutable std::mutex mutex_{};
  bool done_ = false;

 private:
  std::condition_variable changed_{};
  std::function<void()> wake_{};
  std::coroutine_handle<> waiter_{};
};

}  // namespace cohort::detail
