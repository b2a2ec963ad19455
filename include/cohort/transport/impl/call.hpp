// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/call.hpp: registration of calls, the wavefront that heartbeats read, and error text.
#pragma once

#include <cohort/detail/coarse_clock.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/engine.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

namespace cohort {

/// In a forked process an engine cannot say goodbye: its connections are the parent's, and its threads are not here.
inline void keep_for_ever(std::shared_ptr<transport::engine> e) {
  static auto* const kept = new std::vector<std::shared_ptr<transport::engine>>;
  kept->push_back(std::move(e));
}

COHORT_DECL std::uint64_t group::next_formation(std::uint64_t members) { return formed_[members]++; }

COHORT_DECL group::group(std::shared_ptr<transport::engine> engine, std::uint64_t context, std::string name,
                         std::vector<int> members, int rank)
    : engine_(std::move(engine)), context_(context), name_(std::move(name)), members_(std::move(members)), rank_(rank) {
  if (is_member()) engine_->add(*this);
}

COHORT_DECL group::~group() {
  if (engine_->forked()) {
    keep_for_ever(std::move(engine_));
  } else if (is_member()) {
    engine_->remove(*this);
  }
}

COHORT_DECL int group::rank_of(int world_rank) const noexcept {
  const auto at = std::find(members_.begin(), members_.end(), world_rank);
  return at == members_.end() ? -1 : static_cast<int>(at - members_.begin());
}

COHORT_DECL void group::note_entered(std::int64_t sequence, const transport::signature& s) noexcept {
  const std::uint32_t v = version_.load(std::memory_order_relaxed);
  version_.store(v + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entered_.store(sequence, std::memory_order_relaxed);
  past_call& record = recent_[static_cast<std::size_t>(sequence) % remembered];
  record.bits.store(s.packed(), std::memory_order_relaxed);
  record.count.store(s.count, std::memory_order_relaxed);
  version_.store(v + 2, std::memory_order_release);
}

COHORT_DECL void group::note_completed(std::int64_t sequence) noexcept {
  if (sequence > completed_.load(std::memory_order_relaxed)) completed_.store(sequence, std::memory_order_release);
}

COHORT_DECL transport::arrival group::arrival() const {
  transport::arrival a;
  a.context = context_;
  a.members = static_cast<std::uint32_t>(members_.size());
  for (;;) {
    const std::uint32_t before = version_.load(std::memory_order_acquire);
    a.completed = completed_.load(std::memory_order_acquire);
    a.entered = entered_.load(std::memory_order_relaxed);
    a.calls.clear();
    constexpr auto most = static_cast<std::int64_t>(transport::most_calls_told);
    for (std::int64_t n = std::max<std::int64_t>(0, a.entered + 1 - most); n <= a.entered; ++n) {
      const past_call& record = recent_[static_cast<std::size_t>(n) % remembered];
      const std::uint64_t bits = record.bits.load(std::memory_order_relaxed);
      a.calls.push_back(transport::signature::unpack(bits, record.count.load(std::memory_order_relaxed)));
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if ((before & 1U) == 0 && version_.load(std::memory_order_relaxed) == before) return a;
  }
}

COHORT_DECL std::optional<transport::signature> group::recent(std::int64_t sequence) const noexcept {
  const std::int64_t last = last_entered();
  if (sequence < 0 || sequence > last || last - sequence >= static_cast<std::int64_t>(remembered)) return std::nullopt;
  const past_call& record = recent_[static_cast<std::size_t>(sequence) % remembered];
  return transport::signature::unpack(record.bits.load(std::memory_order_relaxed),
                                      record.count.load(std::memory_order_relaxed));
}

COHORT_DECL call::call(std::shared_ptr<group> home, std::int64_t sequence, const transport::signature& signature,
                       options chosen)
    : home_(std::move(home)), sequence_(sequence), signature_(signature) {
  const std::chrono::nanoseconds limit = chosen.timeout.value_or(home_->default_timeout);
  started_ = limit < 100 * detail::coarse_lag ? clock::now() : detail::coarse_now();
  next_ = home_->first_active_;
  if (next_ != nullptr) next_->previous_ = this;
  home_->first_active_ = this;
  if (limit < clock::time_point::max() - started_) {
    deadline_ = started_ + limit;
    engine().watch_deadline(deadline_);
  }
  if (is_collective()) {
    home_->note_entered(sequence_, signature_);
    engine().entered(*this);
  }
  if (chosen.stop.stop_possible()) static_cast<void>(on_stop_.emplace(std::move(chosen.stop), stopper{this}));
}

COHORT_DECL call::~call() {
  if (!finished_) finish();
}

COHORT_DECL void call::finish() noexcept {
  finished_ = true;
  on_stop_.reset();
  (previous_ != nullptr ? previous_->next_ : home_->first_active_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
  previous_ = next_ = nullptr;
  if (!is_collective() || home_->failure_) return;
  // Complete up to the oldest that is still in flight: of several some may overtake others.
  std::int64_t complete = home_->last_entered();
  for (const call* c = home_->first_active_; c != nullptr; c = c->next_) {
    if (c->is_collective()) complete = std::min(complete, c->sequence_ - 1);
  }
  home_->note_completed(complete);
}

COHORT_DECL void call::request_stop() noexcept {
  stop_requested_.store(true, std::memory_order_release);
  engine().request_attention();
}

COHORT_DECL void call::stopper::operator()() const noexcept { self->request_stop(); }

COHORT_DECL error call::failure() const {
  const transport::fault& f = *home_->failure_;
  const bool other_ranks = home_->context() != 0 && f.context == transport::every_context;
  return explained(f.code, f.culprit, f.text + (other_ranks ? " (ranks of the world)" : ""));
}

COHORT_DECL error call::explained(errc code, int culprit, const std::string& what) const {
  error_details d;
  d.rank = home_->engine().rank();
  d.peer = culprit;
  d.host = home_->engine().host();
  d.operation = std::string{name(signature_.kind)};
  d.group = home_->name();
  d.sequence = sequence_;
  d.elapsed = clock::now() - started_;
  char after[32];
  std::snprintf(after, sizeof after, "%.3g s", std::chrono::duration<double>(d.elapsed).count());
  const std::string number = sequence_ >= 0 ? " #" + std::to_string(sequence_) : std::string{};
  const std::string place = home_->context() == 0 ? std::string{} : " (world rank " + std::to_string(d.rank) + ")";
  const std::string text = d.operation + number + " on '" + d.group + "' failed on rank " +
                           std::to_string(home_->rank()) + " of " + std::to_string(home_->size()) + place + " after " +
                           after + ": " + what;
  return error(code, text, std::move(d));
}

}  // namespace cohort
