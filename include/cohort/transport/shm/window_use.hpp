// SPDX-License-Identifier: BSL-1.0
// How one operation works in the window of its communicator: it takes its turn, waits for what the others raise, and
// fails its communicator where they called something else. Used by collective/shared/.
#pragma once

#include <cohort/transport/shm/window_step.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace cohort::transport {

/// One operation's use of the window. It lives in the frame of the operation, and ends with it.
class window_use : public window_step {
 public:
  /// Where the front of the call has begun the operation already (collective/shared/at_once.hpp), this goes on with it.
  window_use(call& c, sharing_engine& transport, shm_window& window) noexcept
      : window_step(c.home(), transport, window), call_(&c) {
    wait_.set.owner = &c;
    if (window.begun == c.sequence() && c.is_collective()) {
      window.begun = shm_window::none;
      halfway_ = std::exchange(window.halfway, false);
      go_on();
      mine_ = begun_ = announced_ = true;
    }
  }
  window_use(const window_use&) = delete;
  window_use& operator=(const window_use&) = delete;
  ~window_use() {
    transport().waits().remove(wait_);
    if (call_->waiting == &wait_.set) call_->waiting = nullptr;
    if (queued_) leave_queue();
    if (mine_) finish();
  }

  /// Waits for a word; trivially destructible, so that it may be a temporary in a co_await expression.
  class reaching {
   public:
    enum class next : unsigned char { nothing, raised, follows, left };
    reaching(window_use& use, const awaited& word, int peer, next what) noexcept
        : use_(&use), word_(word), peer_(peer), what_(what) {}
    [[nodiscard]] bool await_ready() const noexcept { return reached_soon(word_, use_->transport().how_to_wait()); }
    bool await_suspend(std::coroutine_handle<> h) const noexcept { return use_->suspend(h, word_, peer_); }
    void await_resume() const {
      use_->resumed();
      if (what_ == next::raised) use_->check(peer_);
      if (word_.word == nullptr) return;
      if (what_ == next::follows) use_->check_follows(peer_);
      if (what_ == next::left) use_->note_left(peer_);
    }

   private:
    window_use* use_;
    awaited word_;
    int peer_;
    next what_;
  };
  class turn_awaiter {
   public:
    explicit turn_awaiter(window_use& use) noexcept : use_(&use) {}
    [[nodiscard]] bool await_ready() const noexcept { return use_->mine_ || !use_->window().busy; }
    bool await_suspend(std::coroutine_handle<> h) const noexcept { return use_->enqueue(h); }
    void await_resume() const {
      use_->resumed();
      use_->take_turn();
    }

   private:
    window_use* use_;
  };

  /// Waits until the operations that were called before have ended here.
  [[nodiscard]] turn_awaiter turn() noexcept { return turn_awaiter(*this); }
  /// Whether the operation was announced, and its first step raised, before this object was made.
  [[nodiscard]] bool begun() const noexcept { return begun_; }
  /// Whether the second half of that step was raised as well.
  [[nodiscard]] bool halfway() const noexcept { return halfway_; }
  /// Waits until rank k is not too far behind, and holds the two ranks' calls against each other: an operation that
  /// needs nothing of some rank would not find out otherwise that it called something else.
  [[nodiscard]] reaching follower(int k) noexcept {
    return {*this, window_step::follows(k), k, reaching::next::follows};
  }
  /// Waits until rank k reads nothing any more of what this rank is about to overwrite.
  [[nodiscard]] reaching left_by(int k) noexcept { return {*this, window_step::left_by(k), k, reaching::next::left}; }
  /// Waits until rank k's data of this step are in place.
  [[nodiscard]] reaching arrived(int k) noexcept { return {*this, raised_by(k), k, reaching::next::raised}; }
  /// Waits until the second half of this step is done on rank k.
  [[nodiscard]] reaching second_of(int k) noexcept { return {*this, second_by(k), k, reaching::next::nothing}; }
  /// Waits until the next piece of a scan along a chain stands in rank k's slot.
  [[nodiscard]] reaching piece_of(int k) noexcept { return {*this, piece_by(k), k, reaching::next::nothing}; }
  /// Where rank k has given the operation up, waits for the word on why: nothing that was read of its buffers is to be used.
  [[nodiscard]] reaching stands_by(int k) noexcept { return {*this, given_up_by(k), k, reaching::next::nothing}; }
  /// Waits for another word.
  [[nodiscard]] reaching reach(const shared_word& word, std::uint32_t number, int writer) noexcept {
    return {*this, {&word, number}, writer, reaching::next::nothing};
  }

  [[nodiscard]] call& current() const noexcept { return *call_; }
  /// Says what this operation is; before anything is raised.
  void announce() noexcept {
    window_step::announce(call_->sequence(), call_->signature());
    announced_ = true;
  }
  /// The operation has ended; the next may begin.
  void finish() noexcept {
    if (mine_ && !announced_) withdraw();
    pass_turn();
  }

 private:
  bool suspend(std::coroutine_handle<> h, const awaited& what, int writer) noexcept {
    if (call_->home().failure()) {
      wait_.set.failed = true;
      return false;
    }
    wait_.word = what.word;
    wait_.number = what.number;
    wait_.writer = writer;
    wait_.set.pending = 1;
    wait_.set.waiter = h;
    call_->waiting = &wait_.set;
    transport().waits().add(wait_);
    return true;
  }
  bool enqueue(std::coroutine_handle<> h) noexcept {
    if (!suspend(h, {nullptr, 0}, -1)) return false;
    transport().waits().remove(wait_);
    wait_.next = nullptr;
    wait_.previous = window().last_waiting;
    (window().last_waiting != nullptr ? window().last_waiting->next : window().first_waiting) = &wait_;
    window().last_waiting = &wait_;
    queued_ = true;
    return true;
  }
  void leave_queue() noexcept {
    (wait_.previous != nullptr ? wait_.previous->next : window().first_waiting) = wait_.next;
    (wait_.next != nullptr ? wait_.next->previous : window().last_waiting) = wait_.previous;
    wait_.previous = wait_.next = nullptr;
    queued_ = false;
  }
  void resumed() {
    transport().waits().remove(wait_);
    if (queued_) leave_queue();
    call_->waiting = nullptr;
    if (wait_.set.failed) throw call_->failure();
  }

  void take_turn() noexcept {
    if (std::exchange(mine_, true)) return;
    begin();
  }
  void pass_turn() noexcept {
    if (!std::exchange(mine_, false)) return;
    flag_wait* const following = window().first_waiting;
    // Still busy if somebody waits: nobody may come before it.
    window().busy = following != nullptr;
    if (following != nullptr) transport().waits().end(*following, transport());
  }

  void check(int k) {
    if (!note_raised(k)) disagree(k, entry(k, contested(k)), window().own(contested(k)));
  }
  void check_follows(int k) {
    if (!note_follows(k)) disagree(k, entry(k, contested(k)), window().own(contested(k)));
  }
  [[noreturn]] void disagree(int k, const window_head::entry& theirs, const shm_window::past& mine) {
    const group& g = call_->home();
    const signature own = signature::unpack(mine.call, mine.count);
    const signature other = signature::unpack(theirs.call, theirs.count);
    std::string text;
    if (other == own) {
      text = "rank " + std::to_string(g.rank()) + " called " + describe(other) + " as #" +
             std::to_string(mine.sequence) + ", rank " + std::to_string(k) + " as #" + std::to_string(theirs.sequence) +
             "; the ranks of a communicator call the same operations in the same order";
    } else {
      text = describe_disagreement(g.rank(), own, k, other);
    }
    transport().report_mismatch(g, mine.sequence, g.world_rank(k), errc::mismatch, std::move(text));
    throw call_->failure();
  }

  call* call_;
  flag_wait wait_{};
  bool mine_ = false;
  bool begun_ = false;
  bool halfway_ = false;
  bool announced_ = false;
  bool queued_ = false;
};

}  // namespace cohort::transport
