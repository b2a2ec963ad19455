// SPDX-License-Identifier: BSL-1.0
// When the ranks of a host work and when they wait, in memory that they share: a rank that had to wait long for its core
// learns whether another rank had it, or somebody else. Written and read by patience.hpp; the memory is shm/neighbours.hpp's.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace cohort::transport {

/// A time in which a rank did not offer its core to others. All ranks of a host have the same clock.
struct stretch_of_work {
  std::atomic<std::int64_t> from{0};
  std::atomic<std::int64_t> to{0};  ///< 0: it lasts
  std::atomic<int> first_core{-1};
  std::atomic<int> last_core{-1};  ///< another one if the scheduler has taken the rank there meanwhile
};

/// What one rank shows: its last stretch of work, and the last long one before. Whoever waited for its core meanwhile may
/// have it again only when that has long been followed by short ones.
struct core_use {
  stretch_of_work last{};
  stretch_of_work last_long{};
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
    set(own_->last.last_core, ::sched_getcpu());
    set(own_->last.to, count(since));
  }
  /// It does not any more, and has had its core since `from`.
  void works(clock::time_point from) noexcept {
    if (!waiting_) return;
    waiting_ = false;
    stretch_of_work& last = own_->last;
    if (value(last.to) - value(last.from) >= count(clock::time_point{long_stretch})) {
      stretch_of_work& kept = own_->last_long;
      set(kept.first_core, value(last.first_core));
      set(kept.last_core, value(last.last_core));
      set(kept.from, value(last.from));
      set(kept.to, value(last.to));
    }
    const int core = ::sched_getcpu();
    set(last.first_core, core);
    set(last.last_core, core);
    set(last.from, count(from));
    set(last.to, std::int64_t{0});
  }
  /// How much of this time others have worked on one of these two cores, as far as they show.
  [[nodiscard]] std::chrono::nanoseconds worked(int core, int other_core, clock::time_point from,
                                                clock::time_point to) const noexcept {
    const auto within = [&](std::int64_t t) { return std::clamp(t, count(from), count(to)); };
    const auto there = [&](int c) { return c == core || c == other_core; };
    std::int64_t sum = 0;
    for (const core_use* const use : others_) {
      for (const stretch_of_work* const s : {&use->last, &use->last_long}) {
        if (!there(value(s->first_core)) && !there(value(s->last_core))) continue;
        const std::int64_t began = within(value(s->from));
        const std::int64_t ended = value(s->to);
        sum += std::max<std::int64_t>(0, (ended == 0 ? count(to) : within(ended)) - began);
      }
    }
    return std::chrono::nanoseconds{sum};
  }

 private:
  /// Much shorter ones explain no wait that is worth an explanation (patience.hpp).
  static constexpr std::chrono::nanoseconds long_stretch = std::chrono::microseconds{100};

  [[nodiscard]] static std::int64_t count(clock::time_point t) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
  }
  template <class T>
  [[nodiscard]] static T value(const std::atomic<T>& shown) noexcept {
    return shown.load(std::memory_order_relaxed);
  }
  template <class T>
  static void set(std::atomic<T>& shown, T to) noexcept {
    shown.store(to, std::memory_order_relaxed);
  }

  core_use* own_ = nullptr;
  bool waiting_ = false;
  std::vector<const core_use*> others_{};
};

}  // namespace cohort::transport
