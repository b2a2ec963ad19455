// SPDX-License-Identifier: BSL-1.0
// The one executor of schedules: posts a round's transfers, waits for all of them, combines what arrived.
// Called by the collectives, calls the transport; knows bytes, not element types.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/round_plan.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/channel.hpp>

#include <cstddef>

namespace cohort::collective {

/// A rank's own operand, where a schedule that works in place expects it elsewhere; nothing if `from` is null.
struct own_operand {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t bytes = 0;
  bool lasting = true;  ///< what nothing was combined with is wanted at `to` in the end
};

/// Carries out one rank's part of a collective. One without elements sends its messages all the same, empty: a rank
/// that believes otherwise is found out before it goes on.
///
/// Shapes: `where` gives every buffer that the schedule names, cut into the blocks that it counts
/// Needs:  `op` when the schedule reduces; it and the buffers stay until the task has ended; `own` overlaps with none of these
/// Errors: what the communicator failed with; what the reduction's functor throws
/// Cost:   one suspension a round, none when everything was there already
template <class Channel, schedule Schedule>
task<> execute(const Channel& ch, Schedule steps, layouts where, const cohort::detail::reducer* op,
               own_operand own = {}) {
  detail::round_plan plan(where, op);
  if (own.from != nullptr) plan.begin_with(own.to, own.from, own.bytes, own.lasting);
  for (int k = 0; k < steps.rounds(); ++k) {
    plan.clear();
    steps.round(k, plan);
    if (plan.empty()) {
      plan.make_copies();
      continue;
    }
    transport::transfer_scope scope(ch.current());
    plan.start(ch, scope, ch.transport().scratch());
    co_await scope.done();
    plan.end();
  }
  plan.finish();
}

/// The operation has a whole vector that the schedule cuts as it likes.
///
/// Needs: what v.cut(n) refers to stays until the task has ended
template <class Channel, schedule Schedule, class Vector>
task<> execute_in_place(const Channel& ch, const Schedule& steps, Vector&& v, const cohort::detail::reducer* op) {
  layouts where;
  where.out = v.cut(steps.blocks());
  if constexpr (requires { v.elsewhere; }) {
    return execute(ch, steps, where, op, {v.data, v.elsewhere, v.count * v.element_bytes, v.lasting});
  } else {
    return execute(ch, steps, where, op);
  }
}

}  // namespace cohort::collective
