// SPDX-License-Identifier: BSL-1.0
// Bodies of detail/inbox.hpp.
#pragma once

#include <cohort/detail/inbox.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort::detail {

COHORT_DECL void inbox::post(std::shared_ptr<sleeper> who) {
  const std::lock_guard lock(mutex_);
  mail_.push_back(std::move(who));
  has_mail_.store(true, std::memory_order_release);
  for (const bell& b : bells_) b.ring(b.argument);
  changed_.notify_one();
}

COHORT_DECL bool inbox::run() {
  if (!has_mail()) return false;
  std::vector<std::shared_ptr<sleeper>> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(mail_);
    has_mail_.store(false, std::memory_order_relaxed);
  }
  for (const std::shared_ptr<sleeper>& who : now) who->resume();
  return !now.empty();
}

COHORT_DECL void inbox::sleep(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return !mail_.empty(); });
}

COHORT_DECL void inbox::add(bell b) {
  const std::lock_guard lock(mutex_);
  if (std::find(bells_.begin(), bells_.end(), b) == bells_.end()) bells_.push_back(b);
}

COHORT_DECL void inbox::remove(bell b) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(bells_, b);
}

}  // namespace cohort::detail
