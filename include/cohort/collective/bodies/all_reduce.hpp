// SPDX-License-Identifier: BSL-1.0
// What collective/all_reduce.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/all_reduce.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/shared/reduce.hpp>

namespace cohort::collective {

template <class Channel, class Vector>
task<> all_reduce_shared(const Channel& ch, Vector& v, const cohort::detail::reducer& op, bool* finished);

template <class Channel, class Vector>
task<> all_reduce_by(const Channel& ch, algorithm how, Vector& v, const cohort::detail::reducer& op, bool* finished) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return all_reduce_shared(ch, v, op, finished);
    if (how == algorithm::hierarchical) return all_reduce_on_hosts(ch, v, v.cut(1).bytes(0, 1), op);
  }
  switch (how) {
    case algorithm::circulant: return execute_in_place(ch, circulant_all_reduce(p, r), v, &op);
    case algorithm::ring: return execute_in_place(ch, ring_all_reduce(p, r), v, &op);
    case algorithm::central: return execute_in_place(ch, central_all_reduce{p, r}, v, &op);
    case algorithm::halving_doubling: return execute_in_place(ch, halving_doubling_all_reduce(p, r), v, &op);
    default: return execute_in_place(ch, recursive_doubling_all_reduce{p, r}, v, &op);
  }
}

template <class Channel, class Vector>
task<> all_reduce_shared(const Channel& ch, Vector& v, const cohort::detail::reducer& op, bool* finished) {
  const layout whole = v.cut(1);
  const std::size_t bytes = whole.bytes(0, 1);
  const reduced how = co_await reduce_in_window(ch, whole, whole, bytes, op, -1);
  if (how == reduced::not_at_all) {
    co_await all_reduce_by(ch, without_window(ch.current(), bytes, op.commutative), v, op);
  } else if (finished != nullptr) {
    *finished = how == reduced::finished;
  }
}

}  // namespace cohort::collective
