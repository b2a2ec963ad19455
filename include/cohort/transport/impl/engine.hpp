// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/engine.hpp: the turn, the deadlines, and how one failure reaches every operation.
#pragma once

#include <cohort/detail/for_scope.hpp>
#include <cohort/detail/inbox.hpp>
#include <cohort/transport/bell.hpp>
#include <cohort/transport/engine.hpp>

#include <unistd.h>

#include <algorithm>
#include <coroutine>
#include <memory>
#include <string>
#include <utility>

namespace cohort::detail {

COHORT_DECL inbox::bell bell_of(transport::engine& e) noexcept {
  return {[](void* p) noexcept { static_cast<transport::engine*>(p)->request_attention(); }, &e};
}

}  // namespace cohort::detail

namespace cohort::transport {

COHORT_DECL engine::engine(int rank, int size) noexcept : rank_(rank), size_(size) {}
COHORT_DECL engine::~engine() = default;

COHORT_DECL void engine::require_use(const char* what) const {
  if (forked() || visitor_.is_other_thread()) refuse_use(what);
}

COHORT_DECL void engine::sleep(clock::time_point until) {
  require_use("wait");
  const detail::visitor::visit inside(visitor_);
  sleep_until(std::min(until, next_deadline_));
}

COHORT_DECL void engine::resume_later(std::coroutine_handle<> h) {
  resume_later([](void* frame) { std::coroutine_handle<>::from_address(frame).resume(); }, h.address());
}

COHORT_DECL void engine::resume_later(void (*resume)(void*), void* argument) {
  ready_.push_back({resume, argument});
  if (turn_depth_ == 0) schedule_turn();
}

COHORT_DECL const std::shared_ptr<detail::inbox>& engine::inbox() {
  if (!inbox_) {
    inbox_ = std::make_shared<detail::inbox>();
    inbox_->add(detail::bell_of(*this));
  }
  return inbox_;
}

COHORT_DECL void engine::add(group& g) {
  groups_.push_back(&g);
  by_context_[g.context()] = &g;
  group_added(g);
  const auto known =
      std::find_if(unclaimed_.begin(), unclaimed_.end(), [&g](const auto& f) { return concerns(*f, g); });
  if (known == unclaimed_.end()) return;
  const std::shared_ptr<const fault> f = *known;
  unclaimed_.erase(known);
  fail(g, f);
}

COHORT_DECL void engine::request_attention() noexcept {
  attention_.store(true, std::memory_order_release);
  wake();
}

COHORT_DECL bool engine::concerns(const fault& f, const group& g) noexcept {
  if (f.context != every_context) return f.context == g.context();
  return f.culprit < 0 || g.rank_of(f.culprit) >= 0;
}

COHORT_DECL void engine::silence() noexcept {
  if (inbox_) inbox_->remove(detail::bell_of(*this));
}

COHORT_DECL void engine::report_and_deliver(fault f, const group& where) {
  if (const auto known = report(std::move(f), where)) deliver(known);
}

COHORT_DECL std::string engine::misuse_text() const {
  if (forked()) {
    return "this process (pid " + std::to_string(::getpid()) + ") was forked from the one that joined the world (pid " +
           std::to_string(home_.pid()) +
           "), whose connections these are: use the communicator in the parent only, or " +
           "let the child be a rank of its own";
  }
  return "thread " + std::to_string(detail::thread_number()) + " calls while thread " +
         std::to_string(visitor_.thread()) + " is inside the same world: one thread at a time may call, wait and poll";
}

COHORT_DECL void engine::refuse_use(const char* what) const {
  error_details d;
  d.rank = rank_;
  d.host = host();
  d.operation = what;
  throw error(forked() ? errc::forked : errc::concurrent_use,
              std::string{what} + " refused on rank " + std::to_string(rank_) + ": " + misuse_text(), std::move(d));
}

COHORT_DECL bool engine::poll() {
  if (forked()) return false;
  detail::visitor::visit inside(visitor_);
  if (!inside.alone()) {
    // Whoever is inside takes another turn for this one.
    request_attention();
    return false;
  }
  bool moved = false;
  {
    const detail::for_scope deeper(turn_depth_, turn_depth_ + 1);
    moved = progress();
    if (attention_.load(std::memory_order_relaxed)) moved = attend_if_asked() || moved;
    // The clock is read rarely: a deadline may be noticed a few microseconds late.
    if (next_deadline_ != clock::time_point::max() && (++turns_ % turns_a_clock == 0 || !(moved || spinning_))) {
      if (const auto now = clock::now(); now >= next_deadline_) check_deadlines(now);
    }
  }
  inside.leave();  // what is resumed may let another thread have a go
  return run_ready() || moved;
}

COHORT_DECL bool engine::run_ready() {
  const bool mail = inbox_ && inbox_->has_mail();
  if (ready_head_ == ready_.size() && !mail) return false;
  patience_.keep_core();
  // What is resumed may let go of the last communicator of this world, and so of this engine.
  const std::shared_ptr<engine> keep = weak_from_this().lock();
  const detail::for_scope deeper(turn_depth_, turn_depth_ + 1);
  const detail::for_scope innermost_now(innermost(), this);
  if (mail) (void)inbox_->run();
  // A resumed coroutine may wait in a blocking way and so take turns of its own: the queue is consumed by index.
  while (ready_head_ < ready_.size()) {
    const resumption next = ready_[ready_head_++];
    if (ready_head_ == ready_.size()) {
      ready_.clear();
      ready_head_ = 0;
    }
    if (next.resume != nullptr) next.resume(next.argument);
  }
  return true;
}

COHORT_DECL void engine::forget(const void* argument) noexcept {
  for (std::size_t i = ready_head_; i < ready_.size(); ++i) {
    if (ready_[i].argument == argument) ready_[i] = {nullptr, nullptr};
  }
}

COHORT_DECL void engine::complete(request& r) {
  r.complete = true;
  r.place = nullptr;
  transfer_set& set = *r.owner;
  if (--set.pending == 0 && set.waiter) resume_later(set.waiter);
}

COHORT_DECL bool engine::attend_if_asked() { return attention_.exchange(false, std::memory_order_acquire) && attend(); }

COHORT_DECL bool engine::attend() {
  std::vector<std::shared_ptr<const fault>> judged;
  collect_faults(judged);
  for (const auto& f : judged) deliver(f);
  bool stopped = false;
  const std::vector<group*> all = groups_;
  for (group* const g : all) {
    for (call* c = g->first_active_; c != nullptr; c = c->next_) {
      if (!c->stop_requested_.exchange(false, std::memory_order_acq_rel) || g->failure_) continue;
      stopped = true;
      fault f;
      f.code = errc::cancelled;
      f.culprit = rank_;
      f.reporter = rank_;
      f.context = g->context();
      f.sequence = c->sequence();
      f.text = "rank " + std::to_string(rank_) + " cancelled " + std::string{name(c->signature().kind)} +
               (c->is_collective() ? " #" + std::to_string(c->sequence()) : std::string{});
      report_and_deliver(std::move(f), *g);
      break;
    }
  }
  return stopped || !judged.empty();
}

/// "all_reduce #3", or of a message what is still missing: "recv from rank 2 with tag 7".
[[nodiscard]] inline std::string describe_pending(const call& c) {
  std::string text{name(c.signature().kind)};
  if (c.is_collective()) return text + " #" + std::to_string(c.sequence());
  text += " of rank " + std::to_string(c.home().rank());
  const transfer_set* const set = c.waiting;
  std::string parts;
  for (std::size_t i = 0; set != nullptr && i < set->request_count; ++i) {
    const request& r = set->requests[i];
    if (r.complete) continue;
    parts += parts.empty() ? " " : " and ";
    parts += r.sending ? "to " : "from ";
    parts += r.peer < 0 ? "any rank" : "rank " + std::to_string(c.home().rank_of(r.peer));
    parts += r.any_tag ? " with any tag" : " with tag " + std::to_string(r.header.sequence);
  }
  return text + parts;
}

/// The one rank that a message still needs; -1 for a collective, or if any rank would do.
[[nodiscard]] inline int pending_peer(const call& c) {
  const transfer_set* const set = c.waiting;
  if (c.is_collective() || set == nullptr) return -1;
  for (std::size_t i = 0; i < set->request_count; ++i) {
    if (!set->requests[i].complete) return set->requests[i].peer;
  }
  return -1;
}

COHORT_DECL fault engine::overdue(const call& c, clock::time_point now) const {
  const auto waited = std::chrono::duration<double>(now - c.started_).count();
  fault f;
  f.code = errc::timed_out;
  f.culprit = pending_peer(c);
  f.reporter = rank_;
  f.context = c.home().context();
  f.sequence = c.sequence();
  f.text = describe_pending(c) + (c.is_collective() ? " of rank " + std::to_string(c.home().rank()) : std::string{}) +
           " timed out after " + std::to_string(waited).substr(0, 5) + " s";
  return f;
}

COHORT_DECL void engine::check_deadlines(clock::time_point now) {
  // The judge is normally much faster; without its word this rank tells what it knows itself.
  constexpr auto longest_judgement = std::chrono::milliseconds{500};
  clock::time_point next = clock::time_point::max();
  const std::vector<group*> all = groups_;
  for (group* const g : all) {
    for (call* c = g->first_active_; c != nullptr && !g->failure_; c = c->next_) {
      if (c->deadline_ <= now) {
        c->deadline_ = clock::time_point::max();
        if (c->is_collective()) c->verdict_by_ = now + longest_judgement;
        report_and_deliver(overdue(*c, now), *g);
        if (g->failure_) break;
      } else if (c->verdict_by_ <= now) {
        fault f = overdue(*c, now);
        f.text += "; nobody could say who has not arrived";
        deliver(std::make_shared<const fault>(std::move(f)));
        break;
      }
      next = std::min({next, c->deadline_, c->verdict_by_});
    }
  }
  next_deadline_ = next;
  if (next != clock::time_point::max()) deadline_moved(next);
}

COHORT_DECL void engine::deliver(const std::shared_ptr<const fault>& f) {
  // Of those that are gone there is nothing to tell; so few are in the making anywhere.
  constexpr std::size_t most_unclaimed = 64;
  if (f->context != every_context && find(f->context) == nullptr) {
    // A rank that has formed it already may have failed it before this one has.
    if (unclaimed_.size() == most_unclaimed) unclaimed_.erase(unclaimed_.begin());
    unclaimed_.push_back(f);
    return;
  }
  const std::vector<group*> all = groups_;
  for (group* const g : all) {
    if (concerns(*f, *g)) fail(*g, f);
  }
}

COHORT_DECL void engine::fail(group& g, const std::shared_ptr<const fault>& f) {
  if (g.failure_) return;
  g.failure_ = f;
  for (call* c = g.first_active_; c != nullptr; c = c->next_) {
    transfer_set* const set = c->waiting;
    // What has all it waited for goes on: it may have been the last that its operation needed.
    if (set == nullptr || set->pending == 0) continue;
    set->failed = true;
    for (std::size_t i = 0; i < set->request_count; ++i) {
      request& r = set->requests[i];
      if (!r.complete) withdraw(r);
    }
    set->pending = 0;
    if (set->waiter) resume_later(set->waiter);
  }
}

COHORT_DECL void engine::abandon(call& c) {
  if (forked()) return;  // the operation goes on in the parent
  group& g = c.home();
  if (transfer_set* const set = c.waiting; set != nullptr) {
    for (std::size_t i = 0; i < set->request_count; ++i) {
      if (!set->requests[i].complete) withdraw(set->requests[i]);
    }
    if (set->waiter) forget(set->waiter.address());
    set->request_count = 0;
    set->pending = 0;
    c.waiting = nullptr;
  }
  if (g.failure_) return;
  fault f;
  f.code = errc::aborted;
  f.culprit = rank_;
  f.reporter = rank_;
  f.context = g.context();
  f.sequence = c.sequence();
  f.text = "rank " + std::to_string(rank_) + " dropped " + std::string{name(c.signature().kind)} +
           (c.is_collective() ? " #" + std::to_string(c.sequence()) : std::string{}) + " before it was complete";
  report_and_deliver(std::move(f), g);
}

COHORT_DECL void engine::report_mismatch(const group& g, std::int64_t sequence, int culprit, errc code,
                                         std::string text) {
  if (g.failure_) return;
  fault f;
  f.code = code;
  f.culprit = culprit;
  f.reporter = rank_;
  f.context = g.context();
  f.sequence = sequence;
  f.text = std::move(text);
  report_and_deliver(std::move(f), g);
}

COHORT_DECL void engine::remove(group& g) {
  groups_.erase(std::remove(groups_.begin(), groups_.end(), &g), groups_.end());
  by_context_.erase(g.context());
  group_removed(g);
  if (groups_.empty()) leave();
}

COHORT_DECL group* engine::find(std::uint64_t context) const noexcept {
  const auto at = by_context_.find(context);
  return at == by_context_.end() ? nullptr : at->second;
}

}  // namespace cohort::transport
