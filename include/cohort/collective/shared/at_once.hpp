// SPDX-License-Identifier: BSL-1.0
// An operation of one step in the window that is carried out where it is called, without a frame: what a rank gives is
// there for the others before the call returns, and if they have given theirs, so is the result. Otherwise a frame goes
// on from where this has left it. Used by move.hpp and reduce.hpp of this folder.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/operation.hpp>
#include <cohort/transport/shm/window_step.hpp>

#include <cstddef>
#include <exception>

namespace cohort::collective {

/// Longer blocks take so long that a frame makes no difference.
inline constexpr std::size_t at_once_bytes = std::size_t{64} << 10;

/// Whether a call is carried out in the window with short blocks, and nothing can interrupt it.
[[nodiscard]] inline bool may_be_at_once(const cohort::detail::ticket& t, std::size_t bytes) noexcept {
  return t.signature.algorithm == algorithm::shared_memory && bytes <= at_once_bytes && !t.chosen.stop.stop_possible();
}

/// One step of the window, tried once.
///
/// Needs:    `may_be_at_once`
/// Lifetime: `t` stays where it is
class step_at_once {
 public:
  explicit step_at_once(const cohort::detail::ticket& t) noexcept
      : call_(&t), step_(*t.home, static_cast<transport::sharing_engine&>(t.home->engine()), *t.home->window) {}
  step_at_once(const step_at_once&) = delete;
  step_at_once& operator=(const step_at_once&) = delete;
  ~step_at_once() {
    if (state_ != state::begun) return;
    step_.withdraw();
    step_.window().busy = false;
  }

  /// Takes the window for the call; `tiny` if its data stand beside the words. False: a frame must carry it out, as
  /// something is in its way, or the others are not worth waiting for without one.
  COHORT_ALIGNED [[nodiscard]] bool begin(bool tiny) noexcept {
    if (!step_.open() || step_.window().busy || call_->home->busy()) return false;
    if (!step_.transport().how_to_wait().looks_briefly()) return false;
    if (!step_.transport().nothing_early()) return false;  // it may contradict this call
    step_.begin();
    if (tiny) step_.stays_short();
    state_ = state::begun;
    return step_.may_begin() || settled();
  }
  /// The same of one that puts up to so many bytes into its slot, and of `begin`: window_step::goes_round.
  [[nodiscard]] bool begin(bool tiny, std::size_t slot_bytes) noexcept {
    if (!begin(tiny)) return false;
    if (!tiny) step_.goes_round(slot_bytes);
    return true;
  }
  /// So many bytes are put where the others read them, which the next operation will do too, as a rule.
  void gives(std::size_t bytes) noexcept { given_ = bytes; }
  /// This rank's data are in place: from here on a frame could only go on.
  COHORT_ALIGNED void raise() noexcept {
    state_ = state::raised;
    step_.announce_to_others(call_->sequence, call_->signature);
    step_.raise_unheard();
    // What the others need not wait for. It is done before this rank looks for theirs: who looks at a line before it is
    // written takes it away from its writer.
    step_.remember(call_->sequence, call_->signature);
    step_.window().begun = call_->sequence;
    call_->home->note_entered(call_->sequence, call_->signature);
    step_.wake();
  }
  /// Whether rank k has raised the same; looks for it as long as a frame would before it waits.
  COHORT_ALIGNED [[nodiscard]] bool raised_by(int k) noexcept {
    return soon(step_.raised_by(k)) && step_.note_raised(k);
  }
  /// The same where the call has a root: if that changes, each raises when it has what another gave it before. Without one all
  /// raise at once.
  COHORT_ALIGNED [[nodiscard]] bool answered_by(int k) noexcept {
    return reached_soon(step_.raised_by(k), step_.transport().how_to_wait(),
                        step_.window().when(call_->signature.kind)) &&
           step_.note_raised(k);
  }
  /// Where all raise at once, as in calls without a root: false if ranks take turns on cores, and one does not raise in a moment. With a
  /// core each they are not waited for here: `raised_by` does that. (Two ranks feel a branch there as 1.1 to 1.3 times a barrier.)
  COHORT_ALIGNED [[nodiscard]] bool joined_in_turn() noexcept {
    return !step_.window().takes_turns() || look_in_turn();
  }
  COHORT_ALIGNED [[nodiscard]] bool raised_by_all() noexcept {
    for (int k = 1; k < step_.size(); ++k) {
      if (!raised_by(step_.other(k))) return false;
    }
    return true;
  }
  [[nodiscard]] bool answered_by_all() noexcept {
    for (int k = 1; k < step_.size(); ++k) {
      if (!answered_by(step_.other(k))) return false;
    }
    return true;
  }
  /// What the others need of this rank in the second half of the step is in place.
  void raise_second() noexcept {
    step_.raise_second();
    step_.window().halfway = true;
  }
  [[nodiscard]] bool second_by(int k) noexcept { return soon(step_.second_by(k)); }
  /// This rank has what it needs: the call is complete.
  COHORT_ALIGNED void end() noexcept {
    step_.fetch_next(given_);
    step_.end_step();
    step_.window().begun = transport::shm_window::none;
    step_.window().halfway = false;
    step_.window().busy = false;
    call_->home->note_completed(call_->sequence);
  }

  /// The functor has thrown: the frame says so, and combines nothing again, as what was to be combined in place is not what it
  /// was.
  void give_up(cohort::detail::ticket& t) noexcept {
    t.begun.failure = std::current_exception();
    if (state_ != state::raised) return;
    step_.window().begun = transport::shm_window::none;
    step_.window().halfway = false;
    step_.window().busy = false;
  }

  [[nodiscard]] const transport::window_step& step() const noexcept { return step_; }

 private:
  enum class state : unsigned char { idle, begun, raised };

  [[nodiscard]] bool soon(const transport::window_step::awaited& what) noexcept {
    return transport::reached_soon(what, step_.transport().how_to_wait());
  }
  /// One that has another core than this rank may raise before this core would be somebody else's.
  [[nodiscard, gnu::noinline]] bool look_in_turn() noexcept {
    transport::shm_window& window = step_.window();
    bool in_vain = false;
    for (const int k : window.in_turn()) {
      const auto raised = step_.raised_by(k);
      const auto there = [&raised] { return transport::reached(*raised.word, raised.number); };
      // Once in vain, and it is the other rank that waits for its core.
      if (!in_vain && window.on_other_core(k) && !there() && window.across_cores.worth_it()) {
        in_vain = !transport::patience::across_cores(there);
        window.across_cores.came(!in_vain);
      }
      if (!soon(raised)) return false;
    }
    return true;
  }
  /// Whether no rank is too far behind, and none still reads what this operation writes.
  COHORT_ALIGNED [[nodiscard]] bool settled() noexcept {
    for (int i = 1; i < step_.size(); ++i) {
      const int k = step_.other(i);
      const auto last = step_.follows(k);
      if (!soon(last) || (last.word != nullptr && !step_.note_follows(k))) return false;
    }
    for (int i = 1; i < step_.size(); ++i) {
      const int k = step_.other(i);
      const auto left = step_.left_by(k);
      if (!soon(left)) return false;
      if (left.word != nullptr) step_.note_left(k);
    }
    return true;
  }

  const cohort::detail::ticket* call_;
  transport::window_step step_;
  state state_ = state::idle;
  std::size_t given_ = 0;
};

}  // namespace cohort::collective
