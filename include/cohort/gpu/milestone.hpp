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
  int rank = -1;
  int size = 0;
  int device = -1;
  const char* operation = "";
  const std::string* group = nullptr;  ///< the name, in the guardian
};

class milestone final : public pending {
 public:
  using clock = std::chrono::steady_clock;

  cudaStream_t stream = nullptr;
  clock::time_point started = clock::now();
  clock::time_point until = clock::time_point::max();
  std::shared_ptr<guardian> behind{};
  where_on_device where{};
  // The poller's.
  std::optional<flag> raised_flag{};
  std::optional<event> recorded{};

  /// The error that names the rank, the operation, the device and the time.
  [[nodiscard]] std::exception_ptr explain(errc code, const std::string& text) const {
    error_details d;
    d.rank = where.rank;
    d.operation = where.operation;
    if (where.group != nullptr && behind) d.group = *where.group;
    d.elapsed = clock::now() - started;
    std::string sentence = d.operation + " on rank " + std::to_string(where.rank) + " of " +
                           std::to_string(where.size) + ", device " + std::to_string(where.device) + ": " + text;
    return std::make_exception_ptr(error(code, sentence, std::move(d)));
  }

  // --- who waits and looks himself
  [[nodiscard]] bool look() override { return raised_flag && raised_flag->raised() && end_awake(); }
  void attend(int change) noexcept override { attending_.fetch_add(change, std::memory_order_relaxed); }
  void block_attentively() {
    attend(1);
    const bool seen = watch_closely(clock::now() + close_watch, [this] { return look() || done(); });
    attend(-1);
    if (!seen) block();
  }

  // --- the poller
  /// Whether somebody looks at the flag who is quicker.
  [[nodiscard]] bool attended() const noexcept { return raised_flag && attending_.load(std::memory_order_relaxed) > 0; }
  void finish(const std::exception_ptr& why) {
    end([&] { failure_ = why; });
  }

  // --- who waits
  void rethrow() const {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_{};
  std::atomic<int> attending_{0};
};

}  // namespace cohort::detail
