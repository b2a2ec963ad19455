// SPDX-License-Identifier: BSL-1.0
// Which engines a blocking wait must drive: every operation on which something suspends below it makes itself
// known here. Also the inbox of the thread that waits, for what completes on other threads. Used by sync_wait.hpp;
// nothing outlives the wait.
#pragma once

#include <cohort/detail/inbox.hpp>
#include <cohort/transport/engine.hpp>

#include <sched.h>

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
  ~wait_scope() {
    if (outer_ == nullptr && thread_inbox()) {
      for (const auto& e : engines_) thread_inbox()->remove(bell_of(*e));
    }
    current() = outer_;
  }

  void add(const std::shared_ptr<transport::engine>& e) {
    if (std::find(engines_.begin(), engines_.end(), e) != engines_.end()) return;
    engines_.push_back(e);
    // The outermost wait knows every engine on which this thread may sleep.
    if (outer_ == nullptr && thread_inbox()) thread_inbox()->add(bell_of(*e));
  }

  /// An operation of this engine is being waited for on this thread.
  static void note(const std::shared_ptr<transport::engine>& e) {
    for (wait_scope* s = current(); s != nullptr; s = s->outer_) s->add(e);
  }

  /// Where another thread leaves what is to be resumed by this one; null when no wait on this thread would look.
  static std::shared_ptr<inbox> mail_for_this_thread() {
    if (current() == nullptr) return nullptr;
    std::shared_ptr<inbox>& mine = thread_inbox();
    if (!mine) {
      mine = std::make_shared<inbox>();
      const wait_scope* outermost = current();
      while (outermost->outer_ != nullptr) outermost = outermost->outer_;
      for (const auto& e : outermost->engines_) mine->add(bell_of(*e));
    }
    return mine;
  }

  template <class Done>
  void drive_until(Done done) {
    const std::shared_ptr<inbox>& mail = thread_inbox();  // may come while it drives
    while (!done()) {
      if (mail && mail->run()) continue;
      if (engines_.size() == 1) {
        transport::engine& only = *engines_.front();
        only.drive_until([&] { return done() || engines_.size() != 1 || (mail && mail->has_mail()); });
        continue;
      }
      bool moved = false;
      for (std::size_t i = 0; i < engines_.size(); ++i) moved = engines_[i]->turn() || moved;
      // Several worlds cannot be slept on at once: each in turn, for a moment.
      if (!moved && !done() && !engines_.empty()) {
        next_ = (next_ + 1) % engines_.size();
        engines_[next_]->sleep(transport::engine::clock::now() + std::chrono::microseconds{200});
      } else if (engines_.empty() && mail && mail->expects()) {
        // Bounded: something else that this wait is for may be resumed by a thread that does not ring.
        mail->sleep(std::chrono::milliseconds{5});
      } else if (engines_.empty()) {
        ::sched_yield();
      }
    }
  }

 private:
  [[nodiscard]] static inbox::bell bell_of(transport::engine& e) noexcept {
    return {[](void* p) noexcept { static_cast<transport::engine*>(p)->request_attention(); }, &e};
  }
  /// One a thread, for all waits in it: an inner one must not leave lying what an outer one needs.
  static std::shared_ptr<inbox>& thread_inbox() noexcept {
    static thread_local std::shared_ptr<inbox> mine;
    return mine;
  }
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
