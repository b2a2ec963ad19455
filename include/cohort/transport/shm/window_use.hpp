// SPDX-License-Identifier: BSL-1.0
// How one operation works in the window of its communicator: it takes its turn, says what it is, raises what it has
// written, waits for what the others raise, and checks that they called the same. Used by collective/shared/.
#pragma once

#include <cohort/transport/call.hpp>
#include <cohort/transport/cpu_transport.hpp>
#include <cohort/transport/shm/window.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace cohort::transport {

/// One operation's use of the window. It lives in the frame of the operation, and ends with it.
class window_use {
 public:
  window_use(call& c, cpu_transport& transport, shm_window& window) noexcept
      : call_(&c), transport_(&transport), window_(&window) {
    wait_.set.owner = &c;
  }
  window_use(const window_use&) = delete;
  window_use& operator=(const window_use&) = delete;
  ~window_use() {
    transport_->waits().remove(wait_);
    if (call_->waiting == &wait_.set) call_->waiting = nullptr;
    if (queued_) leave_queue();
    if (mine_) pass_turn();
  }

  /// Waits for a word; trivially destructible, so that it may be a temporary in a co_await expression.
  class reaching {
   public:
    enum class next : unsigned char { nothing, check, check_previous, left };
    reaching(window_use& use, const shared_word* word, std::uint32_t number, int peer, next what) noexcept
        : use_(&use), word_(word), number_(number), peer_(peer), what_(what) {}
    [[nodiscard]] bool await_ready() const noexcept {
      if (word_ == nullptr || reached(*word_, number_)) return true;
      // Without a pause first: one may last as long as a word takes to come from another core.
      const int looks = use_->transport_->brief_looks();
      for (int i = 0; i < looks; ++i) {
        if (reached(*word_, number_)) return true;
      }
      for (int i = 0; i < looks / 16; ++i) {
        pause();
        if (reached(*word_, number_)) return true;
      }
      return false;
    }
    bool await_suspend(std::coroutine_handle<> h) const noexcept { return use_->suspend(h, word_, number_, peer_); }
    void await_resume() const {
      use_->resumed();
      if (what_ == next::check) use_->check(peer_);
      if (what_ == next::check_previous) use_->check_previous(peer_);
      if (what_ == next::left) use_->window_->left(peer_) = number_;
    }

   private:
    window_use* use_;
    const shared_word* word_;
    std::uint32_t number_;
    int peer_;
    next what_;
  };
  class turn_awaiter {
   public:
    explicit turn_awaiter(window_use& use) noexcept : use_(&use) {}
    [[nodiscard]] bool await_ready() const noexcept { return !use_->window_->busy; }
    bool await_suspend(std::coroutine_handle<> h) const noexcept { return use_->enqueue(h); }
    void await_resume() const {
      use_->resumed();
      use_->begin();
    }

   private:
    window_use* use_;
  };

  /// Waits until the operations that were called before have ended here.
  [[nodiscard]] turn_awaiter turn() noexcept { return turn_awaiter(*this); }
  /// Whether there is nothing to wait for before this operation begins: `previous_of` and `left_by` of every rank.
  [[nodiscard]] bool may_begin() const noexcept {
    for (int k = 0; k < window_->size(); ++k) {
      if (k == window_->rank()) continue;
      if (window_->agreed(k) != window_->operations - 1) return false;
      if (static_cast<std::int32_t>(window_->left(k) - must_be_done_) < 0) return false;
    }
    return true;
  }
  /// Waits until rank k has entered the operation before this one, and holds the two ranks' calls against each other:
  /// an operation that needs nothing of some rank would not find out otherwise that it called something else.
  [[nodiscard]] reaching previous_of(int k) noexcept {
    const bool known = window_->agreed(k) == window_->operations - 1;
    return {*this, known ? nullptr : &window_->head(k).entries[parity_ ^ 1U].step, window_->previous.start + 1, k,
            known ? reaching::next::nothing : reaching::next::check_previous};
  }
  /// Waits until rank k reads nothing any more of what this rank is about to overwrite.
  [[nodiscard]] reaching left_by(int k) noexcept {
    const bool known = static_cast<std::int32_t>(window_->left(k) - must_be_done_) >= 0;
    return {*this, known ? nullptr : &window_->head(k).done, must_be_done_, k,
            known ? reaching::next::nothing : reaching::next::left};
  }
  /// Waits until rank k's data of this step are in place.
  [[nodiscard]] reaching arrived(int k) noexcept {
    return {*this, &entry(k).step, window_->steps + 1, k, reaching::next::check};
  }
  /// Waits until the second half of this step is done on rank k.
  [[nodiscard]] reaching second_of(int k) noexcept {
    return {*this, &window_->head(k).second, window_->steps + 1, k, reaching::next::nothing};
  }

  /// Waits for another word.
  [[nodiscard]] reaching reach(const shared_word& word, std::uint32_t number, int writer) noexcept {
    return {*this, &word, number, writer, reaching::next::nothing};
  }

  [[nodiscard]] call& current() const noexcept { return *call_; }
  [[nodiscard]] cpu_transport& transport() const noexcept { return *transport_; }
  [[nodiscard]] shm_window& window() const noexcept { return *window_; }
  [[nodiscard]] bool open() const noexcept { return window_->opened == shm_window::state::open; }

  [[nodiscard]] int rank() const noexcept { return window_->rank(); }
  [[nodiscard]] int size() const noexcept { return window_->size(); }
  /// The k-th of the other ranks, beginning behind this one, so that not all read from one at a time.
  [[nodiscard]] int other(int k) const noexcept {
    const int r = window_->rank() + k;
    return r < window_->size() ? r : r - window_->size();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return window_->slot_bytes(); }
  [[nodiscard]] std::byte* slot(int k) const noexcept { return window_->slot(k, window_->steps); }
  [[nodiscard]] std::byte* mine() const noexcept { return slot(window_->rank()); }
  [[nodiscard]] std::byte* short_data(int k) const noexcept { return entry(k).data; }

  /// Says what this operation is; before anything is raised.
  void announce() noexcept {
    window_head::entry& own = entry(window_->rank());
    const signature& s = call_->signature();
    own.sequence = static_cast<std::uint32_t>(call_->sequence());
    own.call = s.packed();
    own.count = s.count;
    window_->current = {own.sequence, s, window_->steps};
  }

  /// This rank's data of this step are in place.
  void raise() noexcept {
    entry(window_->rank()).step.store(window_->steps + 1, std::memory_order_release);
    wake();
  }
  void raise_second() noexcept {
    window_->head(window_->rank()).second.store(window_->steps + 1, std::memory_order_release);
    wake();
  }
  /// This rank has read what it needs of this step.
  void end_step() noexcept {
    ++window_->steps;
    window_->head(window_->rank()).done.store(window_->steps, std::memory_order_release);
    wake();
    first_step_ = false;
    must_be_done_ = window_->steps - 1;
  }
  /// The operation has ended; the next may begin.
  void finish() noexcept { pass_turn(); }
  /// Something was written that others may wait for.
  void wake() noexcept {
    neighbours& all = *transport_->host_ranks();
    all.written();
    for (int k = 0; k < window_->size(); ++k) {
      const shared_word* const asleep = window_->asleep(k);
      if (asleep != nullptr && asleep->load(std::memory_order_relaxed) != 0) all.ring(call_->home().world_rank(k));
    }
  }

 private:
  [[nodiscard]] window_head::entry& entry(int k) const noexcept { return window_->head(k).entries[parity_]; }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  bool suspend(std::coroutine_handle<> h, const shared_word* word, std::uint32_t number, int writer) noexcept {
    if (call_->home().failure()) {
      wait_.set.failed = true;
      return false;
    }
    wait_.word = word;
    wait_.number = number;
    wait_.writer = writer;
    wait_.set.pending = 1;
    wait_.set.waiter = h;
    call_->waiting = &wait_.set;
    transport_->waits().add(wait_);
    return true;
  }
  bool enqueue(std::coroutine_handle<> h) noexcept {
    if (!suspend(h, nullptr, 0, -1)) return false;
    transport_->waits().remove(wait_);
    wait_.next = nullptr;
    wait_.previous = window_->last_waiting;
    (window_->last_waiting != nullptr ? window_->last_waiting->next : window_->first_waiting) = &wait_;
    window_->last_waiting = &wait_;
    queued_ = true;
    return true;
  }
  void leave_queue() noexcept {
    (wait_.previous != nullptr ? wait_.previous->next : window_->first_waiting) = wait_.next;
    (wait_.next != nullptr ? wait_.next->previous : window_->last_waiting) = wait_.previous;
    wait_.previous = wait_.next = nullptr;
    queued_ = false;
  }
  void resumed() {
    transport_->waits().remove(wait_);
    if (queued_) leave_queue();
    call_->waiting = nullptr;
    if (wait_.set.failed) throw call_->failure();
  }

  void begin() noexcept {
    window_->busy = true;
    mine_ = true;
    parity_ = window_->operations++ % 2;
    must_be_done_ = window_->steps - 1;
    window_->previous = window_->current;
  }
  void pass_turn() noexcept {
    if (!std::exchange(mine_, false)) return;
    flag_wait* const following = window_->first_waiting;
    // Still busy if somebody waits: nobody may come before it.
    window_->busy = following != nullptr;
    if (following != nullptr) transport_->waits().end(*following, *transport_);
  }

  void check(int k) {
    // Rank k has entered this step: it has read everything of those before.
    window_->left(k) = window_->steps;
    if (!first_step_) return;
    if (!agrees(entry(k), window_->current)) disagree(k, entry(k), window_->current);
    window_->agreed(k) = window_->operations;
  }
  void check_previous(int k) {
    const window_head::entry& theirs = window_->head(k).entries[parity_ ^ 1U];
    if (!agrees(theirs, window_->previous)) disagree(k, theirs, window_->previous);
    window_->agreed(k) = window_->operations - 1;
    if (static_cast<std::int32_t>(window_->previous.start - window_->left(k)) > 0) {
      window_->left(k) = window_->previous.start;
    }
  }
  [[nodiscard]] static bool agrees(const window_head::entry& theirs, const shm_window::past& mine) noexcept {
    return theirs.call == mine.call.packed() && theirs.count == mine.call.count && theirs.sequence == mine.sequence;
  }
  [[noreturn]] void disagree(int k, const window_head::entry& theirs, const shm_window::past& mine) {
    const group& g = call_->home();
    const signature other = signature::unpack(theirs.call, theirs.count);
    std::string text;
    if (other == mine.call) {
      text = "rank " + std::to_string(g.rank()) + " called " + describe(other) + " as #" +
             std::to_string(mine.sequence) + ", rank " + std::to_string(k) + " as #" + std::to_string(theirs.sequence) +
             "; the ranks of a communicator call the same operations in the same order";
    } else {
      text = describe_disagreement(g.rank(), mine.call, k, other);
    }
    transport_->report_mismatch(g, mine.sequence, g.world_rank(k), errc::mismatch, std::move(text));
    throw call_->failure();
  }

  call* call_;
  cpu_transport* transport_;
  shm_window* window_;
  flag_wait wait_{};
  std::uint32_t must_be_done_ = 0;
  unsigned parity_ = 0;
  bool first_step_ = true;
  bool mine_ = false;
  bool queued_ = false;
};

}  // namespace cohort::transport
