// SPDX-License-Identifier: BSL-1.0
// The reduce: everybody's vectors combined on one rank. Called by communicator/rooted.hpp. Inputs are never
// written: a rank that is not the root combines in scratch space.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/schedule/pipeline.hpp>
#include <cohort/collective/schedule/reduce.hpp>
#include <cohort/collective/select.hpp>

#include <optional>

namespace cohort::collective {

template <class Channel>
task<> reduce_by(const Channel& ch, algorithm how, int root, std::byte* data, std::size_t count,
                 const cohort::detail::reducer& op) {
  const int p = ch.size();
  const int r = ch.rank();
  whole_vector v{data, count, op.element_bytes};
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

template <transport::message_transport Transport, class T, class Op>
operation<> reduce([[maybe_unused]] cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
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
  const cohort::detail::borrowed_buffer scratch(c.engine().scratch(), out == nullptr ? count * sizeof(T) : 0);
  T* const total = out != nullptr ? out : reinterpret_cast<T*>(scratch.data());
  contribute(combine, bytes_of(in), bytes_of(total), count, ch.size());
  co_await reduce_by(ch, c.signature().algorithm, c.signature().root, bytes_of(total), count, combine);
  if (out != nullptr) conclude(combine, bytes_of(out), count, ch.size());
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
