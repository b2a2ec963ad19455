// SPDX-License-Identifier: BSL-1.0
// What collective/broadcast.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/broadcast.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/broadcast.hpp>
#include <cohort/collective/schedule/pipeline.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

template <class Channel>
task<> broadcast_shared(const Channel& ch, int root, whole_vector v);

template <class Channel>
task<> broadcast_by(const Channel& ch, algorithm how, int root, std::byte* data, std::size_t count,
                    std::size_t element_bytes) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::native_broadcast<typename Channel::transport_type>) {
    if (how == algorithm::native) {
      using library = transport::native_collectives<typename Channel::transport_type>;
      return library::broadcast(ch.current(), root, data, count * element_bytes);
    }
  }
  const int segments = pipeline_segments(how, count * element_bytes, p);
  whole_vector v{data, count, element_bytes};
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return broadcast_shared(ch, root, v);
    if (how == algorithm::hierarchical) return broadcast_on_hosts(ch, root, v);
  }
  switch (how) {
    case algorithm::circulant: return execute_in_place(ch, circulant_broadcast(p, r, root, segments), v, nullptr);
    case algorithm::scatter_all_gather:
      return execute_in_place(ch, scatter_all_gather_broadcast(p, r, root), v, nullptr);
    case algorithm::chain: return execute_in_place(ch, chain_broadcast{p, r, root, segments}, v, nullptr);
    default: return execute_in_place(ch, binomial_broadcast{p, r, root}, v, nullptr);
  }
}

template <class Channel>
task<> broadcast_shared(const Channel& ch, int root, whole_vector v) {
  const std::size_t bytes = v.count * v.element_bytes;
  timed_passage way(ch.current(), bytes, bytes);
  const bool done = co_await move_in_window(ch, broadcast_move(v, root), &way);
  if (!done) {
    const algorithm how = without_window(ch.current(), bytes, true);
    co_await broadcast_by(ch, how, root, v.data, v.count, v.element_bytes);
  }
  way.ended();
}

template <transport::message_transport Transport>
operation<> broadcast_in_frame([[maybe_unused]] cohort::detail::ticket t, std::byte* data, std::size_t count,
                               std::size_t element_bytes) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  co_await broadcast_by(ch, c.signature().algorithm, c.signature().root, data, count, element_bytes);
}

template <transport::message_transport Transport>
operation<> broadcast(cohort::detail::ticket t, std::byte* data, std::size_t count, std::size_t element_bytes) {
  if constexpr (transport::sharing_transport<Transport>) {
    if (broadcast_at_once(t, data, count * element_bytes)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if (now.broadcast(data, count * element_bytes)) return operation<>::completed({});
  return broadcast_in_frame<Transport>(std::move(t), data, count, element_bytes);
}

}  // namespace cohort::collective
