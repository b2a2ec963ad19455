// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: ranks that wait in a collective for long compare what they have called. Where everybody waits
// for another, because they have not called the same, no message comes that would tell. Each asks the next member now and
// then: if not all have called the same, two neighbours have not.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <utility>

namespace cohort::transport {

COHORT_DECL void mpi_endpoint::compare_calls(clock::time_point now) {
  compare_at_ = now + between_comparisons;
  std::unordered_map<std::uint64_t, std::int64_t> waiting_in;
  group* in_vain = nullptr;
  int gone = -1;
  try {
    for (group* const g : groups()) {
      if (g->failure() || g->size() < 2) continue;
      const arrival mine = g->arrival();
      if (mine.completed >= mine.entered) continue;
      waiting_in.emplace(g->context(), mine.entered);
      const auto before = waiting_in_.find(g->context());
      if (before == waiting_in_.end() || before->second != mine.entered) continue;
      if (const int member = left_without_forming(*g); member >= 0) {
        in_vain = g;
        gone = member;
        break;
      }
      const int next = g->world_rank((g->rank() + 1) % g->size());
      if (left_[static_cast<std::size_t>(next)]) continue;
      mpi_packet ask = mpi_packet::of(mpi_packet::kind::query);
      ask.context = g->context();
      ask.ticket = for_comparison;
      post(next, ask);
    }
    waiting_in_ = std::move(waiting_in);
    if (in_vain == nullptr) return;
    report_mismatch(*in_vain, in_vain->arrival().entered, gone, errc::peer_lost,
                    describe_departure(*in_vain, gone, true));
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

/// A member that has left the world and was never in this communicator: who was says so before, when it destroys its part. -1:
/// there is none.
COHORT_DECL int mpi_endpoint::left_without_forming(const group& g) const {
  const auto known = retired_.find(g.context());
  for (const int member : g.members()) {
    if (member == rank() || !left_[static_cast<std::size_t>(member)]) continue;
    const bool was_in =
        known != retired_.end() && std::any_of(known->second.of.begin(), known->second.of.end(),
                                               [member](const retirement& r) { return r.rank == member; });
    if (!was_in) return member;
  }
  return -1;
}

COHORT_DECL void mpi_endpoint::on_calls_of(int source, std::uint64_t context, const mpi_standing& theirs) {
  const group* const g = find(context);
  if (g == nullptr || g->failure()) return;
  auto wrong = judge_agreement({standing_in(*g), theirs.as_seen(source, context, false)}, context);
  if (!wrong) return;
  if (const auto verdict = report(std::move(*wrong), *g)) deliver(verdict);
}

}  // namespace cohort::transport
