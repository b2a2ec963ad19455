// SPDX-License-Identifier: BSL-1.0
// Coroutines that wait for a word in shared memory to reach a number. The engine looks at all of them in every turn;
// a failure of their communicator ends the wait as it ends that for a message.
#pragma once

#include <cohort/transport/engine.hpp>

#include <atomic>
#include <cstdint>
#include <utility>

namespace cohort::transport {

using shared_word = std::atomic<std::uint32_t>;
static_assert(shared_word::is_always_lock_free, "words in shared memory must be plain memory");

/// Numbers grow and may wrap around.
[[nodiscard]] inline bool reached(const shared_word& word, std::uint32_t number) noexcept {
  return static_cast<std::int32_t>(word.load(std::memory_order_acquire) - number) >= 0;
}

/// One wait at a time. It stays where it is while it is listed.
struct flag_wait {
  transfer_set set{};
  const shared_word* word = nullptr;  ///< null: it waits for somebody in this process
  std::uint32_t number = 0;
  int writer = -1;  ///< whose word it is: a rank of the communicator
  flag_wait* previous = nullptr;
  flag_wait* next = nullptr;
  bool listed = false;
};

class flag_waits {
 public:
  void add(flag_wait& w) noexcept {
    w.previous = nullptr;
    w.next = first_;
    if (first_ != nullptr) first_->previous = &w;
    first_ = &w;
    w.listed = true;
  }
  void remove(flag_wait& w) noexcept {
    if (!w.listed) return;
    (w.previous != nullptr ? w.previous->next : first_) = w.next;
    if (w.next != nullptr) w.next->previous = w.previous;
    w.listed = false;
  }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// Whether one of them has what it waits for.
  [[nodiscard]] bool any_reached() const noexcept {
    for (const flag_wait* w = first_; w != nullptr; w = w->next) {
      if (w->word != nullptr && reached(*w->word, w->number)) return true;
    }
    return false;
  }
  /// Whether one of them waits for what this rank of that communicator has not written.
  [[nodiscard]] bool awaits(const group& g, int writer) const noexcept {
    for (const flag_wait* w = first_; w != nullptr; w = w->next) {
      if (w->writer == writer && &w->set.owner->home() == &g && !reached(*w->word, w->number)) return true;
    }
    return false;
  }
  /// The only wait that is listed; null when there are none or several.
  [[nodiscard]] const flag_wait* only() const noexcept {
    return first_ != nullptr && first_->next == nullptr ? first_ : nullptr;
  }
  /// Hands those that have what they wait for to the engine.
  bool look(engine& e) {
    bool moved = false;
    for (flag_wait* w = first_; w != nullptr;) {
      flag_wait* const following = w->next;
      if (w->word != nullptr && reached(*w->word, w->number)) {
        end(*w, e);
        moved = true;
      }
      w = following;
    }
    return moved;
  }
  void end(flag_wait& w, engine& e) {
    remove(w);
    if (std::exchange(w.set.pending, 0) != 0) e.resume_later(w.set.waiter);
  }

 private:
  flag_wait* first_ = nullptr;
};

}  // namespace cohort::transport
