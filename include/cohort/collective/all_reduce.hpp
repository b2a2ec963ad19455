// SPDX-License-Identifier: BSL-1.0
// The all-reduce: everybody's vectors combined, the result on every rank. Called by communicator/everyone.hpp.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/select.hpp>

namespace cohort::collective {

template <class Channel, class Vector>
task<> all_reduce_by(const Channel& ch, algorithm how, Vector& v, const cohort::detail::reducer& op) {
  const int p = ch.size();
  const int r = ch.rank();
  switch (how) {
    case algorithm::circulant: return execute_in_place(ch, circulant_all_reduce(p, r), v, &op);
    case algorithm::ring: return execute_in_place(ch, ring_all_reduce(p, r), v, &op);
    case algorithm::halving_doubling: return execute_in_place(ch, halving_doubling_all_reduce(p, r), v, &op);
    default: return execute_in_place(ch, recursive_doubling_all_reduce{p, r}, v, &op);
  }
}

template <transport::message_transport Transport, class T, class Op>
operation<> all_reduce([[maybe_unused]] cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
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
  contribute(combine, bytes_of(in), bytes_of(out), count, ch.size());
  whole_vector all{bytes_of(out), count, sizeof(T)};
  co_await all_reduce_by(ch, c.signature().algorithm, all, combine);
  conclude(combine, bytes_of(out), count, ch.size());
}

template <transport::message_transport Transport, class T, class Op>
operation<T> all_reduce_value([[maybe_unused]] cohort::detail::ticket t, T value, Op op) {
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

}  // namespace cohort::collective
