// SPDX-License-Identifier: BSL-1.0
// A place in a stream that somebody waits for on the host: set by on_host(), reached by the device, seen by the poller,
// which then wakes the coroutine where it belongs.
#pragma once

#include <cohort/detail/close_watch.hpp>
#include <cohort/detail/pending.hpp>
#include <cohort/error.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/flag_ring.hpp>
#include <cohort/gpu/guardian.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace cohort::detail {

/// What the errors of an operation say of where it happened.
struct where_on_device {
  int rank = -1;  ///< -1: of no communicator
  int size = 0;
  int device = -1;
  const char* operation = "";
  const std::string* group = nullptr;  ///< the name, in the guardian

  /// "all_reduce on rank 1 of 4, device 1"
  [[nodiscard]] std::string words() const {
    std::string text = std::string(operation) + " on ";
    if (rank >= 0) text += "rank " + std::to_string(rank) + " of " + std::to_string(size) + ", ";
    return text + "device " + std::to_string(device);
  }
};

/// Whether this is the thread of a poller: nobody may block on it, as it is the one that sees the end of what he waits for.
[[nodiscard]] inline bool& on_pollers_thread() noexcept {
  static thread_local bool yes = false;
  return yes;
}

class milestone final : public pending {
 public:
  using clock = std::chrono::steady_clock;

  cudaStream_t stream = nullptr;
  clock::time_point started = clock::now();
  clock::time_point until = clock::time_point::max();
  std::shared_ptr<guardian> behind{};
  where_on_device where{};
  // The poller's; of the thread that sets it while it is `arming`.
  std::atomic<bool> arming{false};
  std::optional<flag> raised_flag{};
  std::optional<event> recorded{};

  /// The error that names the rank, the operation, the device and the time.
  [[nodiscard]] std::exception_ptr explain(errc code, const std::string& text) const {
    error_details d;
    d.rank = where.rank;
    d.operation = where.operation;
    if (where.group != nullptr && behind) d.group = *where.group;
    d.elapsed = clock::now() - started;
    return std::make_exception_ptr(error(code, where.words() + ": " + text, std::move(d)));
  }

  // --- who waits and looks himself
  [[nodiscard]] bool look() override { return raised_flag && raised_flag->raised() && end_awake(); }
  void attend(int change) noexcept override { attending_.fetch_add(change, std::memory_order_relaxed); }
  /// Refuses to block where that would never end.
  void require_other_thread() const {
    if (!on_pollers_thread()) return;
    std::rethrow_exception(explain(
        errc::invalid_argument,
        "this is the thread of the poller, which sees when the device is done, and to block it would be to wait for "
        "ever: co_await it there, or drive the coroutine by an executor, by sync_wait or by run"));
  }
  void block_attentively() {
    if (!done()) require_other_thread();
    attend(1);
    const bool seen = watch_closely(clock::now() + close_watch, [this] { return look() || done(); });
    attend(-1);
    if (!seen) block();
  }

  // --- the poller
  [[nodiscard]] bool is_arming() const noexcept { return arming.load(std::memory_order_acquire); }
  /// Whether somebody looks at the flag who is quicker.
  [[nodiscard]] bool attended() const noexcept {
    return !is_arming() && raised_flag && attending_.load(std::memory_order_relaxed) > 0;
  }
  void finish(const std::exception_ptr& why) {
    end([&] { failure_ = why; });
  }

  // --- who waits
  void hold() noexcept { holders_.fetch_add(1, std::memory_order_relaxed); }
  /// Without a holder nobody waits, and no deadline holds; the poller keeps it until its flag can be used again.
  void let_go() noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1 && !done()) finish(nullptr);
  }
  void rethrow() const {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_{};
  std::atomic<int> attending_{0};
  std::atomic<int> holders_{0};
};

/// A share in the waiting for a milestone.
class awaited_milestone {
 public:
  explicit awaited_milestone(std::shared_ptr<milestone> m) noexcept : place_(std::move(m)) { place_->hold(); }
  awaited_milestone(const awaited_milestone& other) noexcept : place_(other.place_) {
    if (place_) place_->hold();
  }
  awaited_milestone(awaited_milestone&& other) noexcept = default;
  awaited_milestone& operator=(awaited_milestone other) noexcept {
    place_.swap(other.place_);
    return *this;
  }
  ~awaited_milestone() {
    if (place_) place_->let_go();
  }
  milestone* operator->() const noexcept { return place_.get(); }
  [[nodiscard]] const std::shared_ptr<milestone>& get() const noexcept { return place_; }

 private:
  std::shared_ptr<milestone> place_;
};

}  // namespace cohort::detail
