// SPDX-License-Identifier: BSL-1.0
// The all-reduce: everybody's vectors combined, the result on every rank. Called by communicator/everyone.hpp.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/body.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

/// Result: `*finished` is set if the functor's `finish` has been applied
template <class Channel, class Vector>
task<> all_reduce_by(const Channel& ch, algorithm how, Vector& v, const cohort::detail::reducer& op,
                     bool* finished = nullptr);

template <transport::message_transport Transport, class T, class Op>
operation<> all_reduce_in_frame([[maybe_unused]] cohort::detail::ticket t, const T* in, T* out, std::size_t count,
                                Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  if constexpr (transport::native_all_reduce<Transport, T, Op>) {
    if (c.signature().algorithm == algorithm::native) {
      if (combine.prepare != nullptr) contribute(combine, bytes_of(in), bytes_of(out), count, ch.size());
      const T* const mine = combine.prepare != nullptr ? out : in;
      co_await transport::native_collectives<Transport>::all_reduce(c, bytes_of(mine), bytes_of(out), count, combine);
      conclude(combine, bytes_of(out), count, ch.size());
      co_return;
    }
  }
  whole_vector all{bytes_of(out), count, sizeof(T)};
  algorithm how = c.signature().algorithm;
  if constexpr (transport::sharing_transport<Transport>) {
    // Where the inputs can be read from where they are, they need not be copied to the output first.
    if (how == algorithm::shared_memory && combine.prepare == nullptr) {
      const std::size_t bytes = count * sizeof(T);
      const layout source = layout::uniform(bytes_of(in), bytes, 1);
      const reduced end = co_await reduce_in_window(ch, source, all.cut(1), bytes, combine, -1);
      if (end != reduced::not_at_all) {
        if (end != reduced::finished) conclude(combine, bytes_of(out), count, ch.size());
        co_return;
      }
      how = without_window(c, bytes, combine.commutative);
    }
  }
  all.elsewhere = contribute_late(combine, bytes_of(in), bytes_of(out), count, ch.size());
  bool finished = false;
  co_await all_reduce_by(ch, how, all, combine, &finished);
  if (!finished) conclude(combine, bytes_of(out), count, ch.size());
}

template <transport::message_transport Transport, class T, class Op>
operation<> all_reduce(cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
  if constexpr (transport::sharing_transport<Transport>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (reduce_at_once(t, bytes_of(in), bytes_of(out), count, combine, -1)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if constexpr (transport::native_all_reduce<Transport, T, Op>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (now.all_reduce(bytes_of(in), bytes_of(out), count, combine)) {
      conclude(combine, bytes_of(out), count, t.home->size());
      return operation<>::completed({});
    }
  }
  return all_reduce_in_frame<Transport, T, Op>(std::move(t), in, out, count, std::move(op));
}

template <transport::message_transport Transport, class T, class Op>
operation<T> all_reduce_value_in_frame([[maybe_unused]] cohort::detail::ticket t, T value, Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  contribute(combine, bytes_of(&value), bytes_of(&value), 1, ch.size());
  if constexpr (transport::native_all_reduce<Transport, T, Op>) {
    if (c.signature().algorithm == algorithm::native) {
      co_await transport::native_collectives<Transport>::all_reduce(c, bytes_of(&value), bytes_of(&value), 1, combine);
      conclude(combine, bytes_of(&value), 1, ch.size());
      co_return value;
    }
  }
  whole_vector all{bytes_of(&value), 1, sizeof(T)};
  co_await all_reduce_by(ch, c.signature().algorithm, all, combine);
  conclude(combine, bytes_of(&value), 1, ch.size());
  co_return value;
}

template <transport::message_transport Transport, class T, class Op>
operation<T> all_reduce_value(cohort::detail::ticket t, T value, Op op) {
  if constexpr (transport::sharing_transport<Transport>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    T result = value;
    if (reduce_at_once(t, bytes_of(&value), bytes_of(&result), 1, combine, -1)) {
      return operation<T>::completed(std::move(result));
    }
  }
  return all_reduce_value_in_frame<Transport, T, Op>(std::move(t), value, std::move(op));
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/all_reduce.hpp>
#endif
