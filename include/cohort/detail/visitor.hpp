// SPDX-License-Identifier: BSL-1.0
// Which thread is inside something that one thread at a time may use: notices that two are, without a lock. Used by
// transport/engine.hpp.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace cohort::detail {

/// The number of this thread, as debuggers and `top -H` show it.
[[nodiscard]] inline int thread_number() noexcept {
  static thread_local int number = 0;
  if (number == 0) number = static_cast<int>(::syscall(SYS_gettid));
  return number;
}

/// Not a lock: two threads that come within a nanosecond of each other may both be let in. It is for telling a program
/// that it has a mistake, not for living with it.
class visitor {
 public:
  /// The thread inside; 0 when none is. Any thread.
  [[nodiscard]] int thread() const noexcept { return inside_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_other_thread() const noexcept {
    const int now = thread();
    return now != 0 && now != thread_number();
  }

  struct admission {
    bool alone;    ///< false: another thread is inside, and this one is not
    bool entered;  ///< nobody was inside: this thread is now, until it leaves
  };
  [[nodiscard]] admission come_in() noexcept {
    const int me = thread_number();
    const int now = thread();
    if (now == 0) inside_.store(me, std::memory_order_relaxed);
    return {now == 0 || now == me, now == 0};
  }
  void leave() noexcept { inside_.store(0, std::memory_order_relaxed); }

  /// This thread comes in for one scope; inside another visit of its own, that is nothing.
  class visit {
   public:
    explicit visit(visitor& v) noexcept {
      const admission here = v.come_in();
      alone_ = here.alone;
      if (here.entered) entered_ = &v;
    }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { leave(); }
    void leave() noexcept {
      if (entered_ != nullptr) entered_->leave();
      entered_ = nullptr;
    }
    /// False: another thread is inside, and this one is not.
    [[nodiscard]] bool alone() const noexcept { return alone_; }

   private:
    visitor* entered_ = nullptr;
    bool alone_ = true;
  };

 private:
  std::atomic<int> inside_{0};
};

}  // namespace cohort::detail
