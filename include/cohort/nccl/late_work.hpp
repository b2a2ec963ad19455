// SPDX-License-Identifier: BSL-1.0
// Work that may outlive who asked for it: on a thread of its own, which the end of the program waits for a moment. Used
// where NCCL may take as long as it likes to let go of something.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace cohort::detail {

class late_work {
 public:
  /// Errors: std::system_error where there is no thread
  template <class Work>
  static void begin(Work work) {
    const std::shared_ptr<state> all = unfinished();
    all->change(1);
    try {
      std::thread([all, work = std::move(work)]() mutable {
        work();
        all->change(-1);
      }).detach();
    } catch (...) {
      all->change(-1);
      throw;
    }
  }

 private:
  // A thread that the end of the program finds within a library would meet it half gone.
  static constexpr std::chrono::seconds longest_end{2};

  struct state {
    std::mutex mutex{};
    std::condition_variable changed{};
    int count = 0;

    void change(int by) {
      const std::lock_guard lock(mutex);
      count += by;
      changed.notify_all();
    }
  };
  // Threads that are late even then keep the state.
  struct keeper {
    std::shared_ptr<state> all = std::make_shared<state>();
    keeper() = default;
    keeper(const keeper&) = delete;
    keeper& operator=(const keeper&) = delete;
    ~keeper() {
      std::unique_lock lock(all->mutex);
      all->changed.wait_for(lock, longest_end, [this] { return all->count == 0; });
    }
  };
  static std::shared_ptr<state> unfinished() {
    static const keeper one;
    return one.all;
  }
};

}  // namespace cohort::detail
