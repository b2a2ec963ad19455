// SPDX-License-Identifier: BSL-1.0
// When the ranks of a host work and when they wait, in memory that they share: a rank that had to wait long for its core
// learns whether another rank had it, or somebody else. Written and read by patience.hpp; the memory is shm/neighbours.hpp's.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace cohort::transport {

/// What one rank shows: the last stretch of time in which it did not offer its core to others, and which core that was. All
/// ranks of a host have the same clock.
struct core_use {
  std::atomic<std::int64_t> worked_from{0};
  std::atomic<std::int64_t> waits_since{0};  ///< 0: it works
  std::atomic<int> core{-1};
};

/// The ranks that share the cores with this one, and this one.
class fellows {
 public:
  using clock = std::chrono::steady_clock;

  /// Lifetime: what is shown and what is watched outlive this object's use
  void show(core_use& own) noexcept { own_ = &own; }
  void watch(const core_use& theirs) { others_.push_back(&theirs); }
  [[nodiscard]] bool any() const noexcept { return !others_.empty(); }

  /// This rank offers its core from now on.
  void waits(clock::time_point since) noexcept {
    if (own_ == nullptr || waiting_) return;
    waiting_ = true;
    own_->waits_since.store(count(since), std::memory_order_relaxed);
  }
  /// It does not any more, and has had its core since `from`.
  void works(clock::time_point from) noexcept {
    if (!waiting_) return;
    waiting_ = false;
    own_->core.store(::sched_getcpu(), std::memory_order_relaxed);
    own_->worked_from.store(count(from), std::memory_order_relaxed);
    own_->waits_since.store(0, std::memory_order_relaxed);
  }
  /// How much of this time others have worked on that core, as far as can be told: of each the last stretch.
  [[nodiscard]] std::chrono::nanoseconds worked(int core, clock::time_point from, clock::time_point to) const noexcept {
    const auto within = [&](std::int64_t t) { return std::clamp(t, count(from), count(to)); };
    std::int64_t sum = 0;
    for (const core_use* const use : others_) {
      if (use->core.load(std::memory_order_relaxed) != core) continue;
      const std::int64_t began = within(use->worked_from.load(std::memory_order_relaxed));
      const std::int64_t waits = use->waits_since.load(std::memory_order_relaxed);
      sum += std::max<std::int64_t>(0, (waits == 0 ? count(to) : within(waits)) - began);
    }
    return std::chrono::nanoseconds{sum};
  }

 private:
  [[nodiscard]] static std::int64_t count(clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
  }

  core_use* own_ = nullptr;
  bool waiting_ = false;
  std::vector<const core_use*> others_{};
};

}  // namespace cohort::transport
