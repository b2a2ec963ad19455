// SPDX-License-Identifier: BSL-1.0
// Bodies of detail/inbox.hpp.
#pragma once

#include <cohort/detail/close_watch.hpp>
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

COHORT_DECL bool inbox::look() {
  if (has_mail() || !has_watched_.load(std::memory_order_relaxed)) return has_mail();
  {
    const std::lock_guard lock(mutex_);
    looked_at_ = watched_;
  }
  for (const std::shared_ptr<sleeper>& each : looked_at_) {
    if (each->look()) post(each);
  }
  looked_at_.clear();
  return has_mail();
}

COHORT_DECL void inbox::watch(std::shared_ptr<sleeper> what) {
  const std::lock_guard lock(mutex_);
  watched_.push_back(std::move(what));
  watched_until_ = std::chrono::steady_clock::now() + close_watch;
  has_watched_.store(true, std::memory_order_relaxed);
}

COHORT_DECL void inbox::unwatch(const sleeper& what) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [&](const auto& each) { return each.get() == &what; });
  has_watched_.store(!watched_.empty(), std::memory_order_relaxed);
}

COHORT_DECL bool inbox::watch_closely(std::chrono::milliseconds most) {
  std::vector<std::shared_ptr<sleeper>> now;
  std::chrono::steady_clock::time_point until;
  {
    const std::lock_guard lock(mutex_);
    now = watched_;
    until = watched_until_;
  }
  const auto begin = std::chrono::steady_clock::now();
  if (now.empty() || begin >= until) return false;
  for (const auto& each : now) each->attend(1);
  sleeper* over = nullptr;
  static_cast<void>(detail::watch_closely(std::min(until, begin + most), [&] {
    for (const auto& each : now) {
      if (each->look()) over = each.get();
      if (over != nullptr) return true;
    }
    return has_mail();
  }));
  for (const auto& each : now) each->attend(-1);
  if (over != nullptr) over->resume();
  return true;
}

COHORT_DECL void inbox::sleep(std::chrono::milliseconds most) {
  if (watch_closely(most)) return;
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
