// SPDX-License-Identifier: BSL-1.0
// Bodies of detail/wait_scope.hpp.
#pragma once

#include <cohort/detail/inbox.hpp>
#include <cohort/detail/wait_scope.hpp>
#include <cohort/transport/bell.hpp>
#include <cohort/transport/engine.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

namespace cohort::detail {

COHORT_DECL wait_scope::~wait_scope() {
  if (outer_ == nullptr && thread_inbox()) {
    for (const auto& e : engines_) thread_inbox()->remove(bell_of(*e));
  }
  current() = outer_;
}

COHORT_DECL void wait_scope::add(const std::shared_ptr<transport::engine>& e) {
  if (std::find(engines_.begin(), engines_.end(), e) != engines_.end()) return;
  engines_.push_back(e);
  // The outermost wait knows every engine on which this thread may sleep.
  if (outer_ == nullptr && thread_inbox()) thread_inbox()->add(bell_of(*e));
}

COHORT_DECL std::shared_ptr<inbox> wait_scope::mail_for_this_thread() {
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

COHORT_DECL std::shared_ptr<inbox>& wait_scope::thread_inbox() noexcept {
  static thread_local std::shared_ptr<inbox> mine;
  return mine;
}

COHORT_DECL bool wait_scope::run(inbox& mail) { return mail.run(); }

COHORT_DECL bool wait_scope::look(inbox& mail) { return mail.look(); }

COHORT_DECL bool wait_scope::turn_all() {
  bool moved = false;
  for (std::size_t i = 0; i < engines_.size(); ++i) moved = engines_[i]->turn() || moved;
  return moved;
}

COHORT_DECL void wait_scope::rest(bool at_once, inbox* mail) {
  // Several worlds cannot be slept on at once: each in turn, for a moment.
  if (!at_once && !engines_.empty()) {
    next_ = (next_ + 1) % engines_.size();
    engines_[next_]->sleep(transport::engine::clock::now() + std::chrono::microseconds{200});
  } else if (engines_.empty() && mail != nullptr && mail->expects()) {
    // Bounded: something else that this wait is for may be resumed by a thread that does not ring.
    mail->sleep(std::chrono::milliseconds{5});
  } else if (engines_.empty()) {
    ::sched_yield();
  }
}

}  // namespace cohort::detail
