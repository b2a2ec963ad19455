// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: ranks that wait in a collective for long compare what they have called. Where everybody waits
// for another, because they have not called the same, no message comes that would tell. Each asks the next member now and
// then: if not all have called the same, two neighbours have not.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <utility>

namespace cohort::transport {

COHORT_DECL void mpi_endpoint::compare_calls(clock::time_point now) {
  compare_at_ = now + between_comparisons;
  std::unordered_map<std::uint64_t, std::int64_t> waiting_in;
  try {
    for (const group* const g : groups()) {
      if (g->failure() || g->size() < 2) continue;
      const arrival mine = g->arrival();
      if (mine.completed >= mine.entered) continue;
      waiting_in.emplace(g->context(), mine.entered);
      const auto before = waiting_in_.find(g->context());
      if (before == waiting_in_.end() || before->second != mine.entered) continue;
      const int next = g->world_rank((g->rank() + 1) % g->size());
      if (left_[static_cast<std::size_t>(next)]) continue;
      mpi_packet ask = mpi_packet::of(mpi_packet::kind::query);
      ask.context = g->context();
      ask.ticket = for_comparison;
      post(next, ask);
    }
    waiting_in_ = std::move(waiting_in);
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

COHORT_DECL void mpi_endpoint::on_calls_of(int source, std::uint64_t context, const mpi_standing& theirs) {
  const group* const g = find(context);
  if (g == nullptr || g->failure()) return;
  auto wrong = judge_agreement({standing_in(*g), theirs.as_seen(source, context, false)}, context);
  if (!wrong) return;
  if (const auto verdict = report(std::move(*wrong), *g)) deliver(verdict);
}

}  // namespace cohort::transport
