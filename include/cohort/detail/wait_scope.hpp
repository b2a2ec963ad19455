// SPDX-License-Identifier: BSL-1.0
// Which engines a blocking wait must drive: every operation on which something suspends below it makes itself
// known here. Also the inbox of the thread that waits, for what completes on other threads. Used by sync_wait.hpp;
// nothing outlives the wait.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/transport/engine.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace cohort::detail {

class wait_scope {
 public:
  wait_scope() noexcept : outer_(current()) { current() = this; }
  wait_scope(const wait_scope&) = delete;
  wait_scope& operator=(const wait_scope&) = delete;
  ~wait_scope();

  void add(const std::shared_ptr<transport::engine>& e);

  /// An operation of this engine is being waited for on this thread.
  static void note(const std::shared_ptr<transport::engine>& e) {
    for (wait_scope* s = current(); s != nullptr; s = s->outer_) s->add(e);
  }

  /// Where another thread leaves what is to be resumed by this one; null when no wait on this thread would look.
  static std::shared_ptr<inbox> mail_for_this_thread();

  template <class Done>
  void drive_until(Done done) {
    const std::shared_ptr<inbox>& mail = thread_inbox();  // may come while it drives
    while (!done()) {
      if (mail && run(*mail)) continue;
      if (engines_.size() == 1) {
        transport::engine& only = *engines_.front();
        only.drive_until([&] { return done() || engines_.size() != 1 || (mail && look(*mail)); });
        continue;
      }
      const bool moved = turn_all();
      rest(moved || done(), mail.get());
    }
  }

 private:
  /// Resumes what other threads have left for this one; false if that was nothing.
  [[nodiscard]] static bool run(inbox& mail);
  [[nodiscard]] static bool look(inbox& mail);
  /// A turn of every engine; true if anything moved.
  [[nodiscard]] bool turn_all();
  /// What is left to do until the next turn: nothing if one must follow at once.
  void rest(bool at_once, inbox* mail);

  /// One a thread, for all waits in it: an inner one must not leave lying what an outer one needs.
  static std::shared_ptr<inbox>& thread_inbox() noexcept;
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

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/detail/impl/wait_scope.hpp>
#endif
