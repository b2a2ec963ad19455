// SPDX-License-Identifier: BSL-1.0
// What collective/reduce.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/execute.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/reduce.hpp>
#include <cohort/collective/schedule/pipeline.hpp>
#include <cohort/collective/schedule/reduce.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/reduce.hpp>

namespace cohort::collective {

template <class Channel>
task<> reduce_shared(const Channel& ch, int root, whole_vector v, const cohort::detail::reducer& op, bool* finished);

template <class Channel>
task<> reduce_by(const Channel& ch, algorithm how, int root, const whole_vector& v, const cohort::detail::reducer& op,
                 bool* finished) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return reduce_shared(ch, root, v, op, finished);
    if (how == algorithm::hierarchical) return reduce_on_hosts(ch, root, v, op);
  }
  switch (how) {
    case algorithm::circulant: {
      const int segments = pipeline_segments(how, v.count * v.element_bytes, p);
      return execute_in_place(ch, circulant_reduce(p, r, root, segments), v, &op);
    }
    case algorithm::reduce_scatter_gather:
      return execute_in_place(ch, reduce_scatter_gather_reduce(p, r, root), v, &op);
    case algorithm::halving_gather: return execute_in_place(ch, halving_gather_reduce(p, r, root), v, &op);
    default: return execute_in_place(ch, binomial_reduce{p, r, root}, v, &op);
  }
}

template <class Channel>
task<> reduce_shared(const Channel& ch, int root, whole_vector v, const cohort::detail::reducer& op, bool* finished) {
  const std::size_t bytes = v.count * v.element_bytes;
  const layout whole = layout::uniform(v.data, bytes, 1);
  const reduced how = co_await reduce_in_window(ch, whole, whole, bytes, op, root);
  if (how == reduced::not_at_all) {
    co_await reduce_by(ch, without_window(ch.current(), bytes, op.commutative), root, v, op);
  } else if (finished != nullptr) {
    *finished = how == reduced::finished;
  }
}

template <class Channel>
task<> reduce_in_copy(const Channel& ch, const std::byte* in, std::byte* out, std::size_t count, algorithm how,
                      const cohort::detail::reducer& op, bool* finished) {
  call& c = ch.current();
  const cohort::detail::borrowed_buffer scratch(c.engine().scratch(), out == nullptr ? count * op.element_bytes : 0);
  std::byte* const total = out != nullptr ? out : scratch.data();
  const std::byte* const elsewhere = contribute_late(op, in, total, count, ch.size());
  const whole_vector v{total, count, op.element_bytes, elsewhere, out != nullptr};
  co_await reduce_by(ch, how, c.signature().root, v, op, finished);
}

}  // namespace cohort::collective
