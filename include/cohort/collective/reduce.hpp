// SPDX-License-Identifier: BSL-1.0
// The reduce: everybody's vectors combined on one rank. Called by communicator/rooted.hpp. Inputs are never
// written: a rank that is not the root combines in scratch space.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/pipeline.hpp>
#include <cohort/collective/schedule/reduce.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/reduce.hpp>

#include <optional>

namespace cohort::collective {

template <class Channel>
task<> reduce_shared(const Channel& ch, int root, std::byte* data, std::size_t count, const cohort::detail::reducer& op,
                     bool* finished);

/// Every rank's vector is where the result goes on the root, and may be overwritten.
///
/// Result: `*finished` is set if the functor's `finish` has been applied
template <class Channel>
task<> reduce_by(const Channel& ch, algorithm how, int root, std::byte* data, std::size_t count,
                 const cohort::detail::reducer& op, bool* finished = nullptr) {
  const int p = ch.size();
  const int r = ch.rank();
  whole_vector v{data, count, op.element_bytes};
  if constexpr (sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return reduce_shared(ch, root, data, count, op, finished);
    if (how == algorithm::hierarchical) return reduce_on_hosts(ch, root, v, op);
  }
  switch (how) {
    case algorithm::circulant: {
      const int segments = pipeline_segments(how, count * op.element_bytes, p);
      return execute_in_place(ch, circulant_reduce(p, r, root, segments), v, &op);
    }
    case algorithm::reduce_scatter_gather:
      return execute_in_place(ch, reduce_scatter_gather_reduce(p, r, root), v, &op);
    case algorithm::halving_gather: return execute_in_place(ch, halving_gather_reduce(p, r, root), v, &op);
    default: return execute_in_place(ch, binomial_reduce{p, r, root}, v, &op);
  }
}

template <class Channel>
task<> reduce_shared(const Channel& ch, int root, std::byte* data, std::size_t count, const cohort::detail::reducer& op,
                     bool* finished) {
  const std::size_t bytes = count * op.element_bytes;
  const layout whole = layout::uniform(data, bytes, 1);
  const reduced how = co_await reduce_in_window(ch, whole, whole, bytes, op, root);
  if (how == reduced::not_at_all) {
    co_await reduce_by(ch, without_window(ch.current(), bytes, op.commutative), root, data, count, op);
  } else if (finished != nullptr) {
    *finished = how == reduced::finished;
  }
}

/// `out` is null where the result does not go: there it takes scratch space to combine in.
template <class Channel>
task<> reduce_in_copy(const Channel& ch, const std::byte* in, std::byte* out, std::size_t count, algorithm how,
                      const cohort::detail::reducer& op, bool* finished) {
  call& c = ch.current();
  const cohort::detail::borrowed_buffer scratch(c.engine().scratch(), out == nullptr ? count * op.element_bytes : 0);
  std::byte* const total = out != nullptr ? out : scratch.data();
  contribute(op, in, total, count, ch.size());
  co_await reduce_by(ch, how, c.signature().root, total, count, op, finished);
}

template <transport::message_transport Transport, class T, class Op>
operation<> reduce_in_frame([[maybe_unused]] cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  if constexpr (transport::native_reduce<Transport, T, Op>) {
    if (c.signature().algorithm == algorithm::native) {
      const cohort::detail::borrowed_buffer prepared(c.engine().scratch(),
                                                     combine.prepare != nullptr ? count * sizeof(T) : 0);
      const std::byte* mine = bytes_of(in);
      if (combine.prepare != nullptr) {
        contribute(combine, mine, prepared.data(), count, ch.size());
        mine = prepared.data();
      }
      const int root = c.signature().root;
      co_await transport::native_collectives<Transport>::reduce(c, root, mine, bytes_of(out), count, combine);
      if (out != nullptr) conclude(combine, bytes_of(out), count, ch.size());
      co_return;
    }
  }
  algorithm how = c.signature().algorithm;
  if constexpr (sharing_transport<Transport>) {
    // Nothing is combined but in the window and on the root: the inputs are read from where they are.
    if (how == algorithm::shared_memory && combine.prepare == nullptr) {
      const std::size_t bytes = count * sizeof(T);
      const layout source = layout::uniform(bytes_of(in), bytes, 1);
      const layout dest = layout::uniform(bytes_of(out), bytes, 1);
      const reduced end = co_await reduce_in_window(ch, source, dest, bytes, combine, c.signature().root);
      if (end != reduced::not_at_all) {
        if (out != nullptr && end != reduced::finished) conclude(combine, bytes_of(out), count, ch.size());
        co_return;
      }
      how = without_window(c, bytes, combine.commutative);
    }
  }
  bool finished = false;
  co_await reduce_in_copy(ch, bytes_of(in), bytes_of(out), count, how, combine, &finished);
  if (out != nullptr && !finished) conclude(combine, bytes_of(out), count, ch.size());
}

template <transport::message_transport Transport, class T, class Op>
operation<> reduce(cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
  if constexpr (sharing_transport<Transport>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    const int root = t.signature.root;
    if (reduce_at_once(t, bytes_of(in), bytes_of(out), count, combine, root)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if constexpr (transport::native_reduce<Transport, T, Op>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (now.reduce(bytes_of(in), bytes_of(out), count, combine)) {
      if (out != nullptr) conclude(combine, bytes_of(out), count, t.home->size());
      return operation<>::completed({});
    }
  }
  return reduce_in_frame<Transport, T, Op>(std::move(t), in, out, count, std::move(op));
}

template <transport::message_transport Transport, class T, class Op>
operation<std::optional<T>> reduce_value([[maybe_unused]] cohort::detail::ticket t, T value, Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  contribute(combine, bytes_of(&value), bytes_of(&value), 1, ch.size());
  bool done = false;
  if constexpr (transport::native_reduce<Transport, T, Op>) {
    if (c.signature().algorithm == algorithm::native) {
      const int root = c.signature().root;
      std::byte* const at = bytes_of(&value);
      co_await transport::native_collectives<Transport>::reduce(c, root, at, at, 1, combine);
      done = true;
    }
  }
  if (!done) co_await reduce_by(ch, c.signature().algorithm, c.signature().root, bytes_of(&value), 1, combine);
  if (ch.rank() != c.signature().root) co_return std::optional<T>{};
  conclude(combine, bytes_of(&value), 1, ch.size());
  co_return std::optional<T>{value};
}

}  // namespace cohort::collective
