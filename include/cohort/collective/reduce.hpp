// SPDX-License-Identifier: BSL-1.0
// The reduce: everybody's vectors combined on one rank. Called by communicator/rooted.hpp. Inputs are never
// written: a rank that is not the root combines in scratch space.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/body.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/window.hpp>

#include <optional>

namespace cohort::collective {

/// Every rank's vector is where the result goes on the root, and may be overwritten.
///
/// Result: `*finished` is set if the functor's `finish` has been applied
template <class Channel>
task<> reduce_by(const Channel& ch, algorithm how, int root, const whole_vector& v, const cohort::detail::reducer& op,
                 bool* finished = nullptr);

/// `out` is null where the result does not go: there it takes scratch space to combine in.
template <class Channel>
task<> reduce_in_copy(const Channel& ch, const std::byte* in, std::byte* out, std::size_t count, algorithm how,
                      const cohort::detail::reducer& op, bool* finished);

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
  if constexpr (transport::sharing_transport<Transport>) {
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
  if constexpr (transport::sharing_transport<Transport>) {
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
  const whole_vector one{bytes_of(&value), 1, sizeof(T)};
  if (!done) co_await reduce_by(ch, c.signature().algorithm, c.signature().root, one, combine);
  if (ch.rank() != c.signature().root) co_return std::optional<T>{};
  conclude(combine, bytes_of(&value), 1, ch.size());
  co_return std::optional<T>{value};
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/reduce.hpp>
#endif
