// SPDX-License-Identifier: BSL-1.0
// How another thread wakes coroutines on the thread that drives them: it leaves them here and rings. Owned by an engine
// or by a blocking wait; used by what completes on a thread of its own, as the calls of async_store do.
#pragma once

#include <cohort/detail/config.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace cohort::detail {

/// Something that is resumed on the thread of an inbox.
class sleeper {
 public:
  sleeper() = default;
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;
  virtual ~sleeper() = default;
  /// With no lock held.
  virtual void resume() = 0;

  // --- of what a thread that waits can look at itself; with no lock held
  /// Whether it is over, and nobody has ended it yet: it is now, and posts itself to nobody.
  [[nodiscard]] virtual bool look() { return false; }
  /// How many threads look, so that nobody else need do it.
  virtual void attend(int /*change*/) noexcept {}
};

class inbox {
 public:
  /// What makes the driving thread look: called by any thread, with this inbox's lock held.
  struct bell {
    void (*ring)(void*) noexcept;
    void* argument;
    friend bool operator==(const bell&, const bell&) = default;
  };

  /// Any thread. The driving thread resumes `who` when it next looks.
  void post(std::shared_ptr<sleeper> who);

  // --- the driving thread

  [[nodiscard]] bool has_mail() const noexcept { return has_mail_.load(std::memory_order_acquire); }
  /// Resumes all that has come; true if there was any.
  bool run();
  /// Until something comes, but no longer than `most`. What is watched is looked at first.
  void sleep(std::chrono::milliseconds most);
  /// Whether anything has come, after a look at what is watched.
  [[nodiscard]] bool look();
  /// That is looked at until unwatch(): what writes into memory, and wakes nobody.
  void watch(std::shared_ptr<sleeper> what);
  void unwatch(const sleeper& what) noexcept;

  void add(bell b);
  /// Afterwards it is not rung any more.
  void remove(bell b) noexcept;

  /// How many may still be posted; a wait that expects none does not sleep here.
  void expect(int change) noexcept { expected_.fetch_add(change, std::memory_order_relaxed); }
  [[nodiscard]] bool expects() const noexcept { return expected_.load(std::memory_order_relaxed) > 0; }

 private:
  /// Resumes what is over. False: there is nothing to watch, or not any more.
  bool watch_closely(std::chrono::milliseconds most);

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<std::shared_ptr<sleeper>> mail_{};
  std::vector<std::shared_ptr<sleeper>> watched_{};
  std::vector<std::shared_ptr<sleeper>> looked_at_{};  // the driving thread's copy, while it looks
  std::chrono::steady_clock::time_point watched_until_{};
  std::atomic<bool> has_watched_{false};
  std::vector<bell> bells_{};
  std::atomic<bool> has_mail_{false};
  std::atomic<int> expected_{0};
};

}  // namespace cohort::detail

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/detail/impl/inbox.hpp>
#endif
