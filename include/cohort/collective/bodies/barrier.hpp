// SPDX-License-Identifier: BSL-1.0
// What collective/barrier.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/barrier.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/barrier.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

template <transport::message_transport Transport>
operation<> barrier_in_frame([[maybe_unused]] cohort::detail::ticket t) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const layouts nothing;
  if constexpr (transport::sharing_transport<Transport>) {
    if (c.signature().algorithm == algorithm::shared_memory) {
      const bool done = co_await move_in_window(ch, window_move{});
      if (!done) co_await execute(ch, dissemination_barrier{ch.size(), ch.rank()}, nothing, nullptr);
      co_return;
    }
    if (c.signature().algorithm == algorithm::hierarchical) {
      co_await barrier_on_hosts(ch);
      co_return;
    }
  }
  if constexpr (transport::native_barrier<Transport>) {
    if (c.signature().algorithm == algorithm::native) {
      co_await transport::native_collectives<Transport>::barrier(c);
      co_return;
    }
  }
  if (c.signature().algorithm == algorithm::linear) {  // a monitored barrier's, which rank 0 watches
    co_await execute(ch, central_barrier{ch.size(), ch.rank(), 0}, nothing, nullptr);
  } else if (c.signature().algorithm == algorithm::central) {
    co_await execute(ch, central_barrier{ch.size(), ch.rank(), ch.size() - 1}, nothing, nullptr);
  } else {
    co_await execute(ch, dissemination_barrier{ch.size(), ch.rank()}, nothing, nullptr);
  }
}

template <transport::message_transport Transport>
operation<> barrier(cohort::detail::ticket t) {
  if constexpr (transport::sharing_transport<Transport>) {
    if (barrier_at_once(t)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if (now.barrier()) return operation<>::completed({});
  return barrier_in_frame<Transport>(std::move(t));
}

}  // namespace cohort::collective
