// SPDX-License-Identifier: BSL-1.0
// One call that the window carries out, or messages, or reading of each other's memory: every so often one rank says which, and all
// time each.
#pragma once

#include <cohort/collective/passage.hpp>
#include <cohort/collective/shared/at_once.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/shm/copy_choice.hpp>
#include <cohort/transport/shm/window_use.hpp>

#include <chrono>
#include <cstddef>
#include <optional>

namespace cohort::collective {

class timed_passage {
 public:
  /// Needs:    `bytes` as `selection_table::choose`, and those of a block
  /// Lifetime: `c` outlives it
  timed_passage(const call& c, std::size_t bytes, std::size_t block) noexcept : call_(&c), block_(block) {
    const operation_kind kind = c.signature().kind;
    if (passage_of(kind, bytes, c.home().size()) != passage::either || c.home().selection.override_of(kind)) return;
    record_ = &c.home().passages.of(kind, block);
    ways_ = passage_trials::order_of(kind, c.home().size());
  }

  /// Whether it can go either way. Not what an override has decided.
  [[nodiscard]] bool open() const noexcept { return record_ != nullptr; }
  /// The call is to be carried out, in its turn. Result: whether the ranks are to agree first
  [[nodiscard]] bool begin() noexcept {
    // There is the window alone, and nothing to time.
    if (has_single_copy() && call_->home().window->unreadable) return false;
    const passage_trials::record::turn now = record_->next(plan(), ways_);
    how_ = now.to_agree ? now.found_faster : record_->agreed();
    started_ = clock::now();
    return now.to_agree;
  }
  /// Who says so: rank 0, but where a root gives one that takes, as the root may be ahead of what it has begun.
  [[nodiscard]] int judge() const noexcept {
    const transport::signature& s = call_->signature();
    return s.root != transport::signature::no_root ? (s.root + 1) % call_->home().size() : 0;
  }
  /// The judge, before the step is raised.
  void tell(const transport::window_use& use) const noexcept {
    *use.short_data(use.rank()) = static_cast<std::byte>(*how_);
    record_->agree(*how_);
  }
  /// The others, behind it.
  void hear(const transport::window_use& use) noexcept {
    how_ = *use.short_data(judge()) == static_cast<std::byte>(ways_[0]) ? ways_[0] : ways_[1];
    record_->agree(*how_);
  }
  [[nodiscard]] bool past_the_window() const noexcept { return how_ == passage::messages; }
  [[nodiscard]] bool by_single_copy() const noexcept { return how_ == passage::single_copy; }
  /// Some rank cannot read another one's memory, and all know: this call goes through the window, and so do those that follow.
  void refused() noexcept { call_->home().window->unreadable = true; }
  /// It has been carried out.
  void ended() const noexcept {
    if (how_) record_->took(*how_, block_, clock::now() - started_, plan(), ways_);
  }

 private:
  using clock = std::chrono::steady_clock;

  /// A window that has not been used for a while is as cold as a ring. What is read where it lies settles in the caches within three
  /// calls or, of more ranks than cores, six, and is the faster way more often than not: the first trial of the window costs as much as
  /// four calls, and comes when it is no more than an eighth of them. Messages that come first take a while until they have settled on
  /// how they are copied. All are multiples of the calls that are agreed on together.
  [[nodiscard]] cohort::detail::trial_plan plan() const noexcept {
    using messages = transport::copy_choice;
    const unsigned settling = ways_[0] == passage::messages ? messages::settling(block_) : 0;
    if (block_ >= messages::long_bytes) {
      if (has_single_copy()) return {.trial = 8, .unsettled = 3, .run_in = 24, .memory = 16};
      return {.trial = 4, .unsettled = 1, .run_in = settling};
    }
    return {.trial = 16,
            .unsettled = messages::unsettled(block_),
            .run_in = (settling + 15) / 16 * 16,
            .look_rarely = messages::look_rarely,
            .memory = 16};
  }

  [[nodiscard]] bool has_single_copy() const noexcept {
    return ways_[0] == passage::single_copy || ways_[1] == passage::single_copy;
  }

  const call* call_;
  std::size_t block_;
  passage_trials::record* record_ = nullptr;
  passage_trials::order ways_{};
  std::optional<passage> how_{};
  clock::time_point started_{};
};

// What is carried out where it is called has no step in which to agree.
static_assert(passage_of(operation_kind::scatter, at_once_bytes, 1 << 20) != passage::either);
static_assert(passage_of(operation_kind::all_to_all, at_once_bytes, 1 << 20) != passage::either);
static_assert(passage_of(operation_kind::broadcast, at_once_bytes, 2) != passage::either);

}  // namespace cohort::collective
