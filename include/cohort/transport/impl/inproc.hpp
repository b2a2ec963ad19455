// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/inproc.hpp: delivery by copy between two ranks, and the judgement that all of them share.
#pragma once

#include <cohort/transport/inproc.hpp>
#include <cohort/transport/matching.hpp>
#include <cohort/transport/verdict.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace cohort::transport {

COHORT_DECL inproc_hub::inproc_hub(int size, threading t) : threading_(t), ranks_(static_cast<std::size_t>(size)) {
  standings_.resize(ranks_.size());
  groups_.resize(ranks_.size());
  for (std::size_t r = 0; r < ranks_.size(); ++r) matchers_.push_back(std::make_unique<matcher>());
  for (int r = 0; r < size; ++r) standings_[static_cast<std::size_t>(r)].rank = r;
}

COHORT_DECL inproc_hub::~inproc_hub() = default;

COHORT_DECL inproc_endpoint::inproc_endpoint(std::shared_ptr<inproc_hub> hub, int rank)
    : engine(rank, hub->size()), hub_(std::move(hub)) {
  const std::lock_guard lock(hub_->mutex_);
  hub_->ranks_[index()] = this;
}

COHORT_DECL inproc_endpoint::~inproc_endpoint() {
  silence();
  inproc_endpoint::leave();
}

COHORT_DECL void inproc_endpoint::start(request& r) {
  if (r.sending) {
    start_send(r);
  } else if (r.probing) {
    start_probe(r);
  } else {
    start_receive(r);
  }
}

COHORT_DECL void inproc_endpoint::complete_remotely(request& r) {
  r.place = &finished_;
  finished_.push_back(r);
  mail_.store(true, std::memory_order_release);
  woken_ = true;
  hub_->changed_.notify_all();
}

COHORT_DECL void inproc_endpoint::start_send(request& send) {
  std::unique_lock lock(hub_->mutex_);
  const auto there = static_cast<std::size_t>(send.peer);
  inproc_endpoint* const target = hub_->ranks_[there];
  matcher& inbox = *hub_->matchers_[there];
  const group* const here = find(send.header.context);
  const bool left = hub_->standings_[there].left;
  if (here != nullptr && (left || (send.tagged() && hub_->is_away(send.peer, here->context())))) {
    std::string text = hub_->away_text(send.peer, *here);
    lock.unlock();
    refuse({send.peer, errc::peer_lost, std::move(text), here, send.owner->owner->sequence()});
    return;
  }
  // The receiver's communicator may not exist yet, then nothing can be checked before its receive is posted.
  if (request* const receive = inbox.take_posted(send.header); receive != nullptr) {
    if (auto wrong = accept_delivery(receive->owner->owner->home(), send.header, *receive)) {
      inbox.post(*receive);
      lock.unlock();
      refuse({rank(), wrong->code, std::move(wrong->text), here, send.owner->owner->sequence()});
      return;
    }
    copy_message(send, *receive);
    if (target == this) {
      lock.unlock();
      complete(*receive);
    } else {
      target->complete_remotely(*receive);
      lock.unlock();
    }
    complete(send);
    return;
  }
  auto early = std::make_unique<early_message>();
  early->header = send.header;
  if (send.header.bytes > eager_limit) {
    early->sender = &send;
    send.place = &inbox;
    inbox.keep(std::move(early));
  } else {
    early->payload = hub_->payloads_.take(static_cast<std::size_t>(send.header.bytes));
    gather_from(send, early->payload.data());
    inbox.keep(std::move(early));
  }
  const bool buffered = send.place == nullptr;
  while (request* const probe = inbox.take_probe(send.header)) target->complete_remotely(*probe);
  lock.unlock();
  if (buffered) complete(send);
}

COHORT_DECL void inproc_endpoint::start_receive(request& receive) {
  std::unique_lock lock(hub_->mutex_);
  const std::unique_ptr<early_message> early = mine().take_early(receive);
  if (early == nullptr) return start_posted(receive, lock);
  const group& here = receive.owner->owner->home();
  if (auto wrong = accept_delivery(here, early->header, receive)) {
    const int culprit = early->header.source;
    lock.unlock();
    refuse({culprit, wrong->code, std::move(wrong->text), &here, receive.owner->owner->sequence()});
    return;
  }
  if (request* const send = early->sender; send != nullptr) {
    copy_message(*send, receive);
    inproc_endpoint* const from = hub_->ranks_[static_cast<std::size_t>(early->header.source)];
    send->place = nullptr;
    if (from == this) {
      lock.unlock();
      complete(*send);
    } else {
      from->complete_remotely(*send);
      lock.unlock();
    }
  } else {
    scatter_into(receive, 0, early->payload.data(), early->header.bytes);
    receive.header = early->header;
    hub_->payloads_.give_back(std::move(early->payload));
    lock.unlock();
  }
  complete(receive);
}

// Waits for a message, if somebody is left who can send it.
COHORT_DECL void inproc_endpoint::start_posted(request& receive, std::unique_lock<std::mutex>& lock) {
  const group& here = receive.owner->owner->home();
  const bool left = receive.peer >= 0 && hub_->standings_[static_cast<std::size_t>(receive.peer)].left;
  const bool away = receive.peer >= 0 ? hub_->is_away(receive.peer, here.context()) : hub_->others_away(here);
  if (!left && !(away && receive.tagged())) {
    mine().post(receive);
    return;
  }
  std::string text = hub_->away_text(receive.peer, here);
  lock.unlock();
  refuse({receive.peer, errc::peer_lost, std::move(text), &here, receive.owner->owner->sequence()});
}

COHORT_DECL void inproc_endpoint::start_probe(request& probe) {
  std::unique_lock lock(hub_->mutex_);
  const early_message* const m = mine().find_early(probe);
  if (m == nullptr && !probe.immediate) return start_posted(probe, lock);
  if (m != nullptr) {
    probe.header = m->header;
  } else {
    probe.header.source = -1;
  }
  lock.unlock();
  complete(probe);
}

COHORT_DECL void inproc_endpoint::refuse(const refusal& r) {
  if (r.where != nullptr) report_mismatch(*r.where, r.sequence, r.culprit, r.code, r.text);
}

COHORT_DECL void inproc_endpoint::withdraw(request& r) {
  const std::lock_guard lock(hub_->mutex_);
  if (r.place == &finished_) {
    finished_.remove(r);
  } else if (r.place != nullptr && r.sending) {
    static_cast<matcher*>(r.place)->discard_sender(r);
  } else if (r.place != nullptr) {
    mine().withdraw(r);
  }
  r.place = nullptr;
}

COHORT_DECL bool inproc_endpoint::progress() {
  if (!mail_.load(std::memory_order_acquire)) return false;
  request_list done;
  {
    const std::lock_guard lock(hub_->mutex_);
    done = std::exchange(finished_, request_list{});
    mail_.store(false, std::memory_order_relaxed);
    woken_ = false;
  }
  while (request* const r = done.pop_front()) complete(*r);
  return true;
}

COHORT_DECL bool inproc_endpoint::turn() {
  if (!hub_->cooperative()) return poll();
  bool moved = false;
  for (int r = 0; r < size(); ++r) {
    // A rank may leave while another one takes its turn.
    if (inproc_endpoint* const e = hub_->ranks_[static_cast<std::size_t>(r)]; e != nullptr) moved = e->poll() || moved;
  }
  return moved;
}

COHORT_DECL void inproc_endpoint::sleep_until(clock::time_point until) {
  // Bounded, so that a stop request that slips in between costs a tick and not the whole wait.
  constexpr auto tick = std::chrono::milliseconds{20};
  std::unique_lock lock(hub_->mutex_);
  const auto limit = std::min(until, clock::now() + tick);
  hub_->changed_.wait_until(lock, limit, [this] {
    if (!hub_->cooperative()) return woken_;
    return std::any_of(hub_->ranks_.begin(), hub_->ranks_.end(),
                       [](const auto* e) { return e != nullptr && e->woken_; });
  });
  woken_ = false;
}

COHORT_DECL void inproc_endpoint::wake() noexcept {
  const std::lock_guard lock(hub_->mutex_);
  woken_ = true;
  hub_->changed_.notify_all();
}

COHORT_DECL void inproc_endpoint::collect_faults(std::vector<std::shared_ptr<const fault>>& into) {
  const std::lock_guard lock(hub_->mutex_);
  into.swap(faults_);
}

COHORT_DECL std::shared_ptr<const fault> inproc_endpoint::report(fault f, const group& where) {
  std::shared_ptr<const fault> verdict;
  {
    const std::lock_guard lock(hub_->mutex_);
    verdict = hub_->judge(std::move(f), where.members());
  }
  for (int r = 0; r < size(); ++r) {
    inproc_endpoint* e = nullptr;
    {
      const std::lock_guard lock(hub_->mutex_);
      e = hub_->ranks_[static_cast<std::size_t>(r)];
      if (e == nullptr || e->faults_.empty()) continue;
      e->woken_ = true;
      e->attention_needed();
    }
  }
  hub_->changed_.notify_all();
  return verdict;
}

COHORT_DECL void inproc_endpoint::entered(const call& c) {
  std::unique_lock lock(hub_->mutex_);
  auto& numbers = hub_->called_[c.home().context()];
  inproc_hub::first_call& first = numbers[static_cast<std::size_t>(c.sequence()) % numbers.size()];
  if (first.sequence < c.sequence()) first = {c.sequence(), c.signature(), rank()};
  if (first.sequence == c.sequence() && first.call != c.signature()) {
    std::string text = describe_disagreement(c.home(), rank(), c.signature(), first.rank, first.call);
    lock.unlock();
    refuse({rank(), errc::mismatch, std::move(text), &c.home(), c.sequence()});
    return;
  }
  if (hub_->somebody_left_ || hub_->retiring_.contains(c.home().context())) {
    hub_->judge_departed_on(c.home().context());
  }
}

COHORT_DECL void inproc_endpoint::group_added(group& g) {
  g.crowded = hub_->cooperative();
  const std::lock_guard lock(hub_->mutex_);
  hub_->groups_[index()].emplace(g.context(), &g);
  // The others may have failed before this rank came.
  if (const auto known = hub_->verdicts_.find(g.context()); known != hub_->verdicts_.end()) {
    faults_.push_back(known->second);
    attention_needed();
  }
}

COHORT_DECL void inproc_endpoint::group_removed(group& g) {
  const std::lock_guard lock(hub_->mutex_);
  hub_->refresh_standings(g.context());
  hub_->groups_[index()].erase(g.context());
  if (g.context() != 0) hub_->note_retired(rank(), g);
  bool awaited = false;
  mine().forget(g.context(), [&awaited](const early_message& m) { awaited = awaited || m.sender != nullptr; });
  if (!awaited) return;
  // Somebody waits for this rank to take a long message.
  fault f;
  f.code = errc::peer_lost;
  f.culprit = rank();
  f.reporter = rank();
  f.context = g.context();
  f.text = describe_departure(g, rank(), g.context() == 0);
  hub_->spread(std::move(f));
}

COHORT_DECL void inproc_endpoint::leave() {
  const std::lock_guard lock(hub_->mutex_);
  if (hub_->standings_[index()].left) return;
  hub_->ranks_[index()] = nullptr;
  hub_->standings_[index()].left = true;
  hub_->somebody_left_ = true;
  hub_->judge_departed();
  hub_->judge_departure_of(rank(), 0);
}

// What a rank did on a communicator that it has destroyed stays on record.
COHORT_DECL void inproc_hub::refresh_standings(std::uint64_t context) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (const auto at = groups_[r].find(context); at != groups_[r].end()) standings_[r].note(at->second->arrival());
  }
}

COHORT_DECL std::shared_ptr<const fault> inproc_hub::judge(fault f, const std::vector<int>& members) {
  const auto known = verdicts_.find(f.context);
  std::shared_ptr<const fault> verdict;
  if (known != verdicts_.end()) {
    verdict = known->second;
  } else {
    refresh_standings(f.context);
    if (f.code == errc::timed_out && f.sequence >= 0) f = judge_timeout(std::move(f), standings_, members);
    verdict = std::make_shared<const fault>(std::move(f));
    verdicts_[verdict->context] = verdict;
  }
  for (inproc_endpoint* const e : ranks_) {
    if (e != nullptr) e->faults_.push_back(verdict);
  }
  return verdict;
}

// Somebody has left: on every communicator that a rank has.
COHORT_DECL void inproc_hub::judge_departed() {
  std::unordered_set<std::uint64_t> contexts;
  for (const auto& known : groups_) {
    for (const auto& [context, g] : known) contexts.insert(context);
  }
  for (const std::uint64_t context : contexts) judge_departed_on(context);
}

// On one communicator, which is all that a call there or its end can change.
COHORT_DECL void inproc_hub::judge_departed_on(std::uint64_t context) {
  refresh_standings(context);
  if (verdicts_.contains(context)) return;
  if (auto f = judge_departures_on(standings_, context)) return spread(std::move(*f));
  if (!somebody_left_) return;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto at = groups_[r].find(context);
    if (ranks_[r] == nullptr || at == groups_[r].end()) continue;
    if (auto f = judge_unformed(r, *at->second)) return spread(std::move(*f));
  }
}

/// A rank waits on a communicator for one that has left without having formed it.
COHORT_DECL std::optional<fault> inproc_hub::judge_unformed(std::size_t rank, const group& g) const {
  const arrival mine = g.arrival();
  if (mine.completed >= mine.entered || verdicts_.contains(mine.context)) return std::nullopt;
  for (const int member : g.members()) {
    const standing& who = standings_[static_cast<std::size_t>(member)];
    if (!never_formed(who, mine.context)) continue;
    return fault{errc::peer_lost, member,       static_cast<int>(rank),
                 mine.context,    mine.entered, departure_text(who, mine.context, mine.entered)};
  }
  return std::nullopt;
}

// Receives that only a rank which has left could have answered: the world, or this communicator. Collectives are judged by
// their numbers.
COHORT_DECL void inproc_hub::judge_departure_of(int rank, std::uint64_t context) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r] == nullptr) continue;
    if (context == 0) {
      for (const auto& [each, g] : groups_[r]) judge_receives(r, *g, rank);
    } else if (const auto at = groups_[r].find(context); at != groups_[r].end()) {
      judge_receives(r, *at->second, rank);
    }
  }
}

COHORT_DECL void inproc_hub::judge_receives(std::size_t waiting, const group& g, int gone) {
  if (g.rank_of(gone) < 0) return;
  const bool alone = others_away(g) && matchers_[waiting]->awaits(g.context(), -1, true);
  if (!alone && !matchers_[waiting]->awaits(g.context(), gone, true)) return;
  fault f;
  f.code = errc::peer_lost;
  f.culprit = gone;
  f.reporter = static_cast<int>(waiting);
  f.context = g.context();
  f.text = away_text(gone, g);
  spread(std::move(f));
}

// A member has destroyed its part of a communicator: the others must not wait for it. Some may have yet to form theirs.
COHORT_DECL void inproc_hub::note_retired(int rank, const group& g) {
  const std::uint64_t context = g.context();
  auto& record = standings_[static_cast<std::size_t>(rank)].arrivals;
  if (const auto at = record.find(context); at != record.end()) at->second.retired = true;
  retiring_.insert(context);
  if (g.size() == 1 || others_away(g)) return forget(context);
  judge_departed_on(context);
  judge_departure_of(rank, context);
}

COHORT_DECL void inproc_hub::forget(std::uint64_t context) {
  called_.erase(context);
  retiring_.erase(context);
  verdicts_.erase(context);
  for (standing& s : standings_) s.arrivals.erase(context);
}

/// Whether it has left the world, or destroyed its part of this communicator.
COHORT_DECL bool inproc_hub::is_away(int rank, std::uint64_t context) const {
  const standing& who = standings_[static_cast<std::size_t>(rank)];
  if (who.left || !retiring_.contains(context)) return who.left;
  const arrival* const there = find_arrival(who, context);
  return there != nullptr && there->retired;
}

COHORT_DECL bool inproc_hub::others_away(const group& g) const {
  return g.size() > 1 && std::all_of(g.members().begin(), g.members().end(), [&](int member) {
           return member == g.world_rank(g.rank()) || is_away(member, g.context());
         });
}

/// Needs: those ranks are away; -1 for all but one
COHORT_DECL std::string inproc_hub::away_text(int rank, const group& g) const {
  const bool world = g.context() == 0 || (rank >= 0 && standings_[static_cast<std::size_t>(rank)].left);
  return describe_departure(g, rank, world);
}

COHORT_DECL void inproc_hub::spread(fault f) {
  judge(std::move(f), {});
  for (inproc_endpoint* const e : ranks_) {
    if (e == nullptr) continue;
    e->woken_ = true;
    e->attention_needed();
  }
  changed_.notify_all();
}

}  // namespace cohort::transport
