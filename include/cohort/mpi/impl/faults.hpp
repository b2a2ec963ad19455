// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: how one failure reaches every member of a communicator, and who is asked when a deadline
// has passed. There is no thread that answers for a rank: one that computes answers when it next waits.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <utility>

namespace cohort::transport {

COHORT_DECL void mpi_endpoint::entered(const call& c) {
  const group& g = c.home();
  if (contradicts_early(*this, matcher_, c)) return;
  const auto gone = retired_.find(g.context());
  if (gone == retired_.end()) return;
  const std::vector<retirement> all = gone->second.of;
  for (const retirement& r : all) {
    mpi_packet p = mpi_packet::of(mpi_packet::kind::retired);
    p.context = g.context();
    if (!g.failure()) on_retired(r.rank, p, r.last);
  }
}

/// This rank, as others see it there.
COHORT_DECL standing mpi_endpoint::standing_in(const group& g) const {
  standing here;
  here.rank = rank();
  here.host = host_;
  here.note(g.arrival());
  return here;
}

// A rank has destroyed its part of a communicator: what still needs it there fails.
COHORT_DECL void mpi_endpoint::on_retired(int source, const mpi_packet& p, const mpi_standing& last) {
  retirements& known = retired_[p.context];
  const bool news =
      std::none_of(known.of.begin(), known.of.end(), [&](const retirement& r) { return r.rank == source; });
  if (news) known.of.push_back({source, last, p.other});
  if (known.own) return settle_retirements(p.context, last.members);
  group* const g = find(p.context);
  if (g == nullptr || g->failure()) return;
  std::vector<standing> two{last.as_seen(source, p.context, true), standing_in(*g)};
  two.front().left = p.context == 0;
  if (auto f = judge_departures(two)) {
    const auto verdict = report(std::move(*f), *g);
    if (verdict) deliver(verdict);
    return;
  }
  const bool any_source = others_retired(*g) && matcher_.awaits(p.context, -1, true);
  const bool long_send =
      std::any_of(announced_.begin(), announced_.end(),
                  [&](const announced& a) {
                    return a.send != nullptr && a.send->peer == source && a.send->header.context == p.context;
                  }) ||
      (links_.to(source).memory != nullptr && links_.to(source).connection->awaits_grant(p.context, false));
  if (any_source || long_send || matcher_.awaits(p.context, source, true)) {
    report_mismatch(*g, -1, source, errc::peer_lost, describe_departure(*g, source, p.context == 0));
  }
}

COHORT_DECL void mpi_endpoint::broadcast(const fault& f, const std::vector<int>& members) {
  if (broken_) return;
  const std::size_t bytes = std::min(f.text.size(), peer_connection::longest_notice - sizeof(mpi_packet));
  for (const int member : members) {
    if (member == rank() || left_[static_cast<std::size_t>(member)]) continue;
    post(member, packet_of(f), f.text.data(), bytes);
  }
}

/// The first that is known of a communicator stays.
COHORT_DECL void mpi_endpoint::note(std::shared_ptr<const fault> f) {
  faults_.push_back(std::move(f));
  attention_needed();
}

/// A failure of the whole world that was noticed here.
COHORT_DECL void mpi_endpoint::spread(const fault& f) {
  note(std::make_shared<const fault>(f));
  broadcast(f, everybody());
}

/// MPI has refused something: nothing can be relied upon any more.
COHORT_DECL void mpi_endpoint::mpi_failed(const std::string& what) {
  fault f;
  f.code = errc::io_error;
  f.culprit = -1;
  f.reporter = rank();
  f.text = "MPI failed on rank " + std::to_string(rank()) + ": " + what;
  try {
    spread(f);
  } catch (...) {
    note(std::make_shared<const fault>(f));
  }
  broken_ = true;
}

COHORT_DECL std::shared_ptr<const fault> mpi_endpoint::report(fault f, const group& where) {
  for (const auto& earlier : faults_) {
    if (concerns(*earlier, where)) return earlier;
  }
  if (f.code == errc::timed_out && f.sequence >= 0 && where.size() > 1 && !broken_) {
    if (inquiry_) return nullptr;  // one at a time; the other ends at its second deadline
    inquiry q;
    q.what = std::move(f);
    q.members = where.members();
    q.answers.resize(static_cast<std::size_t>(size()));
    q.until = clock::now() + longest_inquiry;
    inquiry_ = std::move(q);
    mpi_packet ask = mpi_packet::of(mpi_packet::kind::query);
    ask.context = where.context();
    try {
      for (const int member : where.members()) {
        if (member != rank()) post(member, ask);
      }
    } catch (const std::exception& e) {
      mpi_failed(e.what());
    }
    return nullptr;
  }
  auto verdict = std::make_shared<const fault>(std::move(f));
  try {
    broadcast(*verdict, where.members());
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
  return verdict;
}

/// Says who has not arrived, as far as they have answered.
COHORT_DECL void mpi_endpoint::conclude_inquiry() {
  inquiry q = std::move(*inquiry_);
  inquiry_.reset();
  const group* const g = find(q.what.context);
  if (g == nullptr || g->failure()) return;
  std::vector<standing> world(static_cast<std::size_t>(size()));
  std::vector<int> heard;
  std::string silent;
  int silent_rank = -1;
  for (const int member : q.members) {
    standing& who = world[static_cast<std::size_t>(member)];
    who.rank = member;
    if (member == rank()) {
      who = standing_in(*g);
    } else if (const auto& answer = q.answers[static_cast<std::size_t>(member)]; answer) {
      who = answer->as_seen(member, q.what.context, false);
    } else {
      silent += (silent.empty() ? "" : ", ") + place_of(who, q.what.context);
      silent_rank = silent_rank < 0 ? member : silent_rank;
      continue;
    }
    heard.push_back(member);
  }
  auto disagreement = judge_agreement(world, q.what.context);
  fault f = disagreement ? std::move(*disagreement) : judge_timeout(std::move(q.what), world, heard);
  if (!disagreement && !silent.empty()) {
    f.text += "; no answer from " + silent + ": it computes without waiting, is stopped, or is gone";
    if (f.culprit < 0) f.culprit = silent_rank;
  }
  const auto verdict = std::make_shared<const fault>(std::move(f));
  broadcast(*verdict, g->members());
  faults_.push_back(verdict);
  attention_needed();
}

COHORT_DECL void mpi_endpoint::collect_faults(std::vector<std::shared_ptr<const fault>>& into) { into.swap(faults_); }

}  // namespace cohort::transport
