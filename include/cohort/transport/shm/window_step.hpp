// SPDX-License-Identifier: BSL-1.0
// What one operation does in the window of its communicator without waiting: it says what it is, raises what it has
// written, sees what the others have raised, and whether they called the same. window_use.hpp waits in between.
#pragma once

#include <cohort/detail/fetch_line.hpp>
#include <cohort/detail/hand_back.hpp>
#include <cohort/detail/round_room.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/sharing_engine.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/window.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cohort::transport {

class window_step {
 public:
  window_step(group& g, sharing_engine& transport, shm_window& window) noexcept
      : group_(&g), transport_(&transport), window_(&window) {}
  window_step(const window_step&) = delete;
  window_step& operator=(const window_step&) = delete;

  [[nodiscard]] sharing_engine& transport() const noexcept { return *transport_; }
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
  [[nodiscard]] std::byte* slot(int k) const noexcept { return window_->slot(k, window_->steps) + place_; }
  [[nodiscard]] std::byte* mine() const noexcept { return slot(window_->rank()); }
  [[nodiscard]] std::byte* short_data(int k) const noexcept { return entry(k).data; }

  /// Takes the window for one operation.
  void begin() noexcept {
    window_->busy = true;
    number_ = window_->operations++;
    must_be_done_ = window_->steps - 1;
  }
  /// Nothing has been announced: for the others there was no such operation.
  void withdraw() noexcept { --window_->operations; }
  /// Goes on with what another object has begun, announced and raised for the same operation.
  void go_on() noexcept {
    number_ = window_->operations - 1;
    must_be_done_ = window_->steps - 1;
  }
  /// The operation has one step, whose data stand beside the words: no slot is written.
  void stays_short() noexcept { writes_slot_ = false; }
  /// The operation has one step, in which a rank puts up to so many bytes into its slot: where they go is another place each time, if
  /// that is faster. Every rank says so, and before any looks at its slot or another's.
  void goes_round(std::size_t bytes) noexcept {
    if (!detail::goes_round(bytes)) return;
    round_ = true;
    place_ = detail::place_in_round(window_->rounds, bytes);
  }
  /// Whether there is nothing to wait for before this operation goes on: no rank is too far behind, all have called the
  /// same until then, and none reads any more what this rank is about to overwrite.
  COHORT_ALIGNED [[nodiscard]] bool may_begin() const noexcept {
    for (int k = 0; k < window_->size(); ++k) {
      if (k != window_->rank() && (follows(k).word != nullptr || left_by(k).word != nullptr)) return false;
    }
    return true;
  }

  /// A word of another rank that must reach a number; null if that is known already.
  struct awaited {
    const shared_word* word;
    std::uint32_t number;
  };
  /// Rank k has entered the last operation that it must have entered before this rank enters its own. Where that is not
  /// known, one further on is waited for, which it can enter without this rank: several are read in one go then, and the
  /// two do not meet in every line.
  [[nodiscard]] awaited follows(int k) const noexcept {
    const unsigned ahead = window_->ahead();
    if (number_ < ahead || window_->agreed(k) > number_ - ahead) return {nullptr, 0};
    const std::uint64_t last = followed();
    return {&entry(k, last).step, window_->own(last).start + 1};
  }
  /// It has. False: it called something else, then or before.
  [[nodiscard]] bool note_follows(int k) noexcept {
    std::uint64_t last = followed();
    // It may have come further: what is known of it need not be looked for at the next operation.
    while (last + 1 < number_ && reached(entry(k, last + 1).step, window_->own(last + 1).start + 1)) ++last;
    if (!note_entered(k, last)) return false;
    const std::uint32_t start = window_->own(last).start;
    if (static_cast<std::int32_t>(start - window_->left(k)) > 0) window_->left(k) = start;
    return true;
  }
  /// Rank k reads nothing any more of what this rank is about to overwrite.
  [[nodiscard]] awaited left_by(int k) const noexcept {
    const bool known = !writes_slot_ || static_cast<std::int32_t>(window_->left(k) - must_be_done_) >= 0;
    return {known ? nullptr : &window_->head(k).done, must_be_done_};
  }
  void note_left(int k) noexcept { window_->left(k) = must_be_done_; }
  /// Rank k's data of this step are in place.
  [[nodiscard]] awaited raised_by(int k) const noexcept { return {&entry(k).step, window_->steps + 1}; }
  /// They are. False: it called something else, now or before.
  [[nodiscard]] bool note_raised(int k) noexcept {
    // It has entered this step: it has read everything of those before.
    window_->left(k) = window_->steps;
    return !first_step_ || note_entered(k, number_);
  }
  /// The operation in which rank k called something else.
  [[nodiscard]] std::uint64_t contested(int k) const noexcept { return window_->agreed(k); }
  /// The second half of this step is done on rank k.
  [[nodiscard]] awaited second_by(int k) const noexcept { return {&window_->head(k).second, window_->steps + 1}; }
  /// The next piece of a scan along a chain stands in rank k's slot.
  [[nodiscard]] awaited piece_by(int k) const noexcept { return {&window_->head(k).pieces, window_->pieces + 1}; }

  /// Says what this operation is; before anything is raised.
  void announce(std::int64_t sequence, const signature& s) noexcept {
    announce_to_others(sequence, s);
    remember(sequence, s);
  }
  /// The same in two parts: what the others read, and what this rank holds against what they have announced.
  void announce_to_others(std::int64_t sequence, const signature& s) noexcept {
    window_head::entry& own = entry(window_->rank());
    own.sequence = static_cast<std::uint32_t>(sequence);
    own.call = s.packed();
    own.count = s.count;
  }
  void remember(std::int64_t sequence, const signature& s) noexcept {
    // Not out of the entry, whose line another core may have by now.
    shm_window::past& own = window_->own(number_);
    own.sequence = static_cast<std::uint32_t>(sequence);
    own.start = window_->steps;
    own.call = s.packed();
    own.count = s.count;
  }
  /// This rank's data of this step are in place.
  void raise() noexcept {
    raise_unheard();
    wake();
  }
  /// The same for those that look; `wake` is to follow for those that sleep.
  void raise_unheard() noexcept { entry(window_->rank()).step.store(window_->steps + 1, std::memory_order_release); }
  COHORT_ALIGNED void raise_second() noexcept {
    window_->head(window_->rank()).second.store(window_->steps + 1, std::memory_order_release);
    wake();
  }
  /// This rank is done with the next piece: where anybody needs it, it stands in its slot.
  void raise_piece() noexcept {
    window_->head(window_->rank()).pieces.store(++window_->pieces, std::memory_order_release);
    wake();
  }
  /// This rank has read what it needs of this step.
  COHORT_ALIGNED void end_step() noexcept {
    ++window_->steps;
    window_->head(window_->rank()).done.store(window_->steps, std::memory_order_release);
    wake();
    first_step_ = false;
    writes_slot_ = true;
    if (round_) ++window_->rounds;
    round_ = false;
    place_ = 0;
    must_be_done_ = window_->steps - 1;
  }
  /// The step that has ended wrote no slot, and the next takes the one that it would have written: data that follow each other go
  /// to either slot in turn. The ones before the last are to have been read.
  void keep_slot() noexcept {
    ++window_->steps;
    must_be_done_ = window_->steps - 3;
  }
  /// This rank alone reads bytes [at, at + bytes) of rank k's slot, and has.
  void hand_back(int k, std::size_t at, std::size_t bytes) const noexcept { detail::hand_back(slot(k) + at, bytes); }
  /// The same of every other rank's.
  void hand_back_all(std::size_t at, std::size_t bytes) const noexcept {
    for (int k = 1; k < size(); ++k) hand_back(other(k), at, bytes);
  }
  /// This rank ends an operation before those have that reach its buffers, which may be something else behind this.
  void give_up() noexcept {
    window_->head(window_->rank()).given_up.store(1, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// Rank k has, at the latest while this rank read what it has read until now; then a word that it never raises so far.
  [[nodiscard]] awaited given_up_by(int k) const noexcept {
    constexpr std::uint32_t never = 2;
    std::atomic_thread_fence(std::memory_order_acquire);
    const shared_word& word = window_->head(k).given_up;
    return {word.load(std::memory_order_acquire) == 0 ? nullptr : &word, never};
  }
  /// The lines that the next operation will write first were last read by others. It is often like this one, which has given so
  /// many bytes. Of more than a few lines the first ones are written before the last have come.
  void fetch_next(std::size_t bytes) const noexcept {
    constexpr std::size_t line = 64;
    constexpr std::size_t most = 512;
    const window_head::entry& next = entry(window_->rank(), number_ + 1);
    detail::fetch_line_to_write(&next);
    if (bytes <= line - offsetof(window_head::entry, data) || bytes > most) return;
    if (!writes_slot_) return detail::fetch_line_to_write(next.data + sizeof next.data - line);
    const std::byte* const slot = window_->slot(window_->rank(), window_->steps + 1);
    for (std::size_t at = 0; at < bytes; at += line) detail::fetch_line_to_write(slot + at);
  }
  /// Something was written that others may wait for.
  COHORT_ALIGNED void wake() noexcept {
    neighbours& all = *transport_->host_ranks();
    all.written();
    for (const shm_window::sleeper& other : window_->watched()) {
      const std::uint32_t waits_for = other.asleep->load(std::memory_order_relaxed);
      if (waits_for == host_desk::awake) continue;
      if (waits_for == host_desk::for_anything || waits_for == host_desk::for_window_of(transport_->rank())) {
        all.ring(group_->world_rank(other.rank));
      }
    }
  }

 protected:
  [[nodiscard]] window_head::entry& entry(int k, std::uint64_t operation) const noexcept {
    return window_->entry(k, operation);
  }

 private:
  [[nodiscard]] window_head::entry& entry(int k) const noexcept { return entry(k, number_); }
  [[nodiscard]] std::uint64_t followed() const noexcept {
    // Not where ranks take turns on a core: whoever has it goes as far as it can.
    return number_ - window_->ahead() / (window_->size() <= 2 ? 2 : 1);
  }
  /// Rank k has entered operation `last`: whether it called what this rank did, then and in those before that nobody
  /// has looked at.
  [[nodiscard]] bool note_entered(int k, std::uint64_t last) noexcept {
    std::uint64_t& next = window_->agreed(k);
    for (; next <= last; ++next) {
      if (!agrees(entry(k, next), window_->own(next))) return false;
    }
    return true;
  }
  [[nodiscard]] static bool agrees(const window_head::entry& theirs, const shm_window::past& mine) noexcept {
    return theirs.call == mine.call && theirs.count == mine.count && theirs.sequence == mine.sequence;
  }

  group* group_;
  sharing_engine* transport_;
  shm_window* window_;
  std::uint64_t number_ = 0;  ///< of this operation among those in the window
  std::size_t place_ = 0;     ///< of its data in the slots
  std::uint32_t must_be_done_ = 0;
  bool first_step_ = true;
  bool writes_slot_ = true;
  bool round_ = false;
};

/// Whether a word has reached its number, or does so in a moment.
[[nodiscard]] inline bool reached_soon(const window_step::awaited& what, patience& how) noexcept {
  return what.word == nullptr || how.briefly([&what] { return reached(*what.word, what.number); });
}
[[nodiscard]] inline bool reached_soon(const window_step::awaited& what, patience& how, first_look& first) noexcept {
  return what.word == nullptr || how.briefly([&what] { return reached(*what.word, what.number); }, first);
}

}  // namespace cohort::transport
