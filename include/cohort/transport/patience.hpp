// SPDX-License-Identifier: BSL-1.0
// How a rank waits for what others do: it looks again, offers its core to whoever may do it, or sleeps. Which of these is
// best depends on who else is on the core: how long a yield takes tells that, and what the ranks show each other, if they do
// (core_use.hpp). Used by engine.hpp and shm/.
#pragma once

#include <cohort/detail/other_core.hpp>
#include <cohort/transport/core_use.hpp>
#include <cohort/transport/first_look.hpp>
#include <cohort/transport/home_core.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace cohort::transport {

class patience {
 public:
  using clock = std::chrono::steady_clock;

  /// For ranks that share memory: `ranks` of them on `cores`, which is at least 1.
  void among(int ranks, int cores) noexcept {
    crowded_ = ranks > cores;
    spins_ = crowded_ ? 1 : 4000;
    brief_looks_ = crowded_ ? 2 : 256;
    // Those on one core take turns: after one round of yields everybody has been there.
    brief_yields_ = crowded_ ? 2 * ((ranks + cores - 1) / cores) : 0;
  }
  /// A core for this rank, of those that it shares with others; -1: none.
  void live_on(int core) noexcept { home_ = home_core(core); }
  /// The other ranks on these cores, where they show when they work.
  [[nodiscard]] fellows& beside() noexcept { return fellows_; }
  /// More ranks than cores: whoever copies takes the core from another.
  [[nodiscard]] bool crowded() const noexcept { return crowded_; }
  /// Whether it is worth looking briefly before anything is made that can wait.
  [[nodiscard]] bool looks_briefly() const noexcept { return brief_looks_ > 0; }

  /// Looks for something as long as it takes to come from another core that has just written it, or from another rank on
  /// this core that was about to.
  template <class There>
  [[nodiscard]] bool briefly(const There& there) noexcept {
    // Without a pause first: one may last as long as a word takes to come from another core.
    for (int i = 0; i <= brief_looks_; ++i) {
      if (there()) return true;
    }
    for (int i = 0; i < brief_looks_ / 16; ++i) {
      pause();
      if (there()) return true;
    }
    bool came = false;
    for (int i = 0; i < brief_yields_ && sleeps_due_ == 0 && !came; ++i) {
      (void)offer_core();
      came = there();
    }
    keep_core();
    return came;
  }

  /// The same of what is looked for again and again, and not written before the other rank has read something of this one.
  template <class There>
  [[nodiscard]] bool briefly(const There& there, first_look& first) noexcept {
    if (crowded_) return briefly(there);
    first.wait();
    const bool at_once = there();
    const bool came = at_once || briefly(there);
    if (came) first.came(at_once);
    return came;
  }

  /// Looks for something for as long as another core may take to copy so many bytes out of what it has been sent and as many into
  /// what it sends, with time to spare. Not for ranks that share cores.
  template <class There>
  [[nodiscard]] static bool while_copied(const There& there, std::size_t bytes) noexcept {
    constexpr std::size_t a_pause = 64;
    for (std::size_t looks = bytes / a_pause; looks > 0; --looks) {
      pause();
      if (there()) return true;
    }
    return false;
  }

  /// Of ranks that share cores: looks for what one that has another core may be about to write. To offer this core instead would
  /// take longer, and those on it wait for the same by then.
  template <class There>
  [[nodiscard]] static bool across_cores(const There& there) noexcept {
    constexpr int looks = 32;
    for (int i = 0; i < looks; ++i) {
      if (there()) return true;
      pause();
    }
    return there();
  }

  /// This rank has moved a long message by system calls. The others may be copying such ones too, each for longer than a short
  /// call takes.
  void moved_long_message() noexcept { moved_long_ = clock::now(); }

  /// The core is offered to nobody any more, and has been this rank's since it was last. Before it works: whoever waits for
  /// the core meanwhile wants to know who has it.
  void keep_core() noexcept { fellows_.works(offered_until_); }

  enum class next : unsigned char { look, sleep };
  /// One wait, turn by turn.
  class wait {
   public:
    explicit wait(patience& p) noexcept
        : patience_(&p), spins_(p.shared_core_ > 0 ? std::min(p.spins_, spins_on_shared_core) : p.spins_) {}
    wait(const wait&) = delete;
    wait& operator=(const wait&) = delete;
    ~wait() { patience_->keep_core(); }
    /// Whether the next turn follows at once.
    [[nodiscard]] bool spins() const noexcept { return idle_ < spins_; }
    /// A turn has been taken; what comes now.
    [[nodiscard]] next after(bool moved) noexcept {
      if (moved) {
        idle_ = 0;
        patience_->keep_core();
        return next::look;
      }
      if (++idle_ <= spins_) return next::look;
      if (patience_->sleeps_due_ > 0) {
        --patience_->sleeps_due_;
        idle_ = 0;
        patience_->fellows_.waits(clock::now());
        return next::sleep;
      }
      const clock::time_point now = patience_->offer_core();
      if (idle_ == spins_ + 1) yields_since_ = now;
      return now - yields_since_ < longest_yielding ? next::look : next::sleep;
    }

    /// The sleep is over.
    void woke() noexcept { patience_->offered_until_ = clock::now(); }

   private:
    static constexpr auto longest_yielding = std::chrono::milliseconds{1};
    static constexpr int spins_on_shared_core = 8;
    patience* patience_;
    int spins_;
    int idle_ = 0;
    clock::time_point yields_since_{};
  };

 private:
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  /// Lets others have the core, and learns who they are. Result: when that was over.
  clock::time_point offer_core() noexcept {
    constexpr int waits_on_shared_core = 64;
    // Longer, and that was no rank that waits: one that works, or a time slice of somebody else. Beside the latter the kernel
    // resumes a sleeper sooner.
    // Many ranks on a core that wake each other up make hundreds of microseconds of a yield themselves.
    const auto slow_yield = crowded_ ? std::chrono::microseconds{1000} : std::chrono::microseconds{300};
    const clock::time_point before = clock::now();
    const int core = ::sched_getcpu();
    fellows_.waits(before);
    ::sched_yield();
    const clock::time_point after = clock::now();
    offered_until_ = after;
    const bool slow = after - before > slow_yield;
    const bool sure = fellows_.any() || !crowded_;
    const bool somebody_works = slow && (sure ? !ranks_worked(core, before, after) : slow_again(before, after));
    home_.look(after, somebody_works, sure);
    if (after - before > shared_yield) {
      shared_core_ = waits_on_shared_core;
      if (!crowded_ && ++shared_yields_ >= move_after_) leave_core();
    } else {
      shared_yields_ = 0;
      if (shared_core_ > 0) --shared_core_;
      else move_after_ = first_move_after;
    }
    if (somebody_works) {
      sleep_for_some_waits();
    } else if (!slow && fast_yields_ < enough_fast_yields) {
      ++fast_yields_;
    }
    return after;
  }

  /// Whether a yield on that core took so long because other ranks did something there, or where this one is now, as they do
  /// between two calls and when they copy: they are soon done with it.
  [[nodiscard]] bool ranks_worked(int core, clock::time_point from, clock::time_point to) const noexcept {
    return fellows_.any() && fellows_.worked(core, ::sched_getcpu(), from, to) > (to - from) / 2;
  }

  /// Whether the last slow yield was a short while ago: where ranks share cores and do not show when they work, one may be theirs,
  /// but somebody who works without a pause makes a yield slow each time. Between ranks that copy long messages each may be.
  [[nodiscard]] bool slow_again(clock::time_point from, clock::time_point to) noexcept {
    constexpr auto short_while = std::chrono::milliseconds{16};
    constexpr auto longest_copy = std::chrono::milliseconds{4};
    if (to - moved_long_ < short_while && to - from < longest_copy) return false;
    return to - std::exchange(slow_at_, to) < short_while;
  }

  /// A few, as it may have been for once; more each time when that was wrong.
  void sleep_for_some_waits() noexcept {
    constexpr int fewest = 8;
    constexpr int most = 128;
    sleeps_at_a_time_ = fast_yields_ < enough_fast_yields ? std::clamp(2 * sleeps_at_a_time_, fewest, most) : fewest;
    sleeps_due_ = sleeps_at_a_time_;
    fast_yields_ = 0;
  }

  /// A scheduler may leave two ranks on one core for seconds while another is idle: who yields has just run, and is not
  /// moved while its data are in the caches; nor is who sleeps for a moment. In vain if no core is idle, so ever rarer.
  void leave_core() noexcept {
    constexpr int most_moves_after = 4096;
    const clock::time_point before = clock::now();
    ::sched_yield();
    shared_yields_ = 0;
    if (clock::now() - before <= shared_yield) return;  // the other one has left
    cohort::detail::go_to_other_core(moves_++);
    move_after_ = std::min(2 * move_after_, most_moves_after);
  }

  /// A yield that takes longer has let somebody have the core, so that there is nothing to spin for.
  static constexpr auto shared_yield = std::chrono::microseconds{2};
  static constexpr int first_move_after = 8;
  static constexpr int enough_fast_yields = 64;  ///< to believe that nobody works on this core

  bool crowded_ = false;
  int spins_ = 50;  ///< turns without news before the core is offered to others
  int brief_looks_ = 0;
  int brief_yields_ = 0;
  int shared_core_ = 0;  ///< waits to come in which somebody else is taken to be on this core
  int sleeps_due_ = 0;
  int sleeps_at_a_time_ = 0;
  int fast_yields_ = enough_fast_yields;  ///< since the last slow one
  int shared_yields_ = 0;                 ///< in a row, in which somebody else was on this core
  int move_after_ = first_move_after;
  int moves_ = 0;
  clock::time_point slow_at_{};  ///< the last slow yield
  clock::time_point moved_long_{};
  home_core home_{};
  fellows fellows_{};
  clock::time_point offered_until_{};  ///< the end of the last yield, or sleep
};

}  // namespace cohort::transport
