// SPDX-License-Identifier: BSL-1.0
// Which engines a blocking wait must drive: every operation on which something suspends below it makes itself
// known here. Used by sync_wait.hpp; nothing outlives the wait.
#pragma once

#include <cohort/transport/engine.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

namespace cohort::detail {

class wait_scope {
 public:
  wait_scope() noexcept : outer_(current()) { current() = this; }
  wait_scope(const wait_scope&) = delete;
  wait_scope& operator=(const wait_scope&) = delete;
  ~wait_scope() { current() = outer_; }

  void add(const std::shared_ptr<transport::engine>& e) {
    if (std::find(engines_.begin(), engines_.end(), e) == engines_.end()) engines_.push_back(e);
  }

  /// An operation of this engine is being waited for on this thread.
  static void note(const std::shared_ptr<transport::engine>& e) {
    for (wait_scope* s = current(); s != nullptr; s = s->outer_) s->add(e);
  }

  template <class Done>
  void drive_until(Done done) {
    while (!done()) {
      if (engines_.size() == 1) {
        transport::engine& only = *engines_.front();
        only.drive_until([&] { return done() || engines_.size() != 1; });
        continue;
      }
      bool moved = false;
      for (std::size_t i = 0; i < engines_.size(); ++i) moved = engines_[i]->turn() || moved;
      // Several worlds cannot be slept on at once: each in turn, for a moment.
      if (!moved && !done() && !engines_.empty()) {
        next_ = (next_ + 1) % engines_.size();
        engines_[next_]->sleep(transport::engine::clock::now() + std::chrono::microseconds{200});
      } else if (engines_.empty()) {
        ::sched_yield();
      }
    }
  }

 private:
  static wait_scope*& current() noexcept {
    static thread_local wait_scope* innermost = nullptr;
    return innermost;
  }

  wait_scope* outer_;
  // Shared: a communicator may go while one of its engine's turns is running.
  std::vector<std::shared_ptr<transport::engine>> engines_{};
  std::size_t next_ = 0;
};

}  // namespace cohort::detail
