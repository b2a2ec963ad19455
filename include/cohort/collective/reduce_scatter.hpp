// SPDX-License-Identifier: BSL-1.0
// The reduce-scatter: everybody's vectors combined, each rank left with its own block of the result. Called by
// communicator/everyone.hpp.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/body.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

/// Where its blocks would begin and end, in bytes, if they lay one after the other.
[[nodiscard]] detail::short_vector<std::size_t> offsets_of(const layout& blocks);

template <class Channel>
task<> reduce_scatter_by(const Channel& ch, algorithm how, const layouts& where,
                         detail::short_vector<std::size_t> offsets, const cohort::detail::reducer& op);

template <transport::message_transport Transport, class T, class Op>
operation<> reduce_scatter_in_frame([[maybe_unused]] cohort::detail::ticket t, layout in, layout out,
                                    detail::short_vector<std::size_t> offsets, Op op,
                                    [[maybe_unused]] block_table keep) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  layouts where;
  where.in = in;
  where.out = out;
  cohort::detail::borrowed_buffer prepared;
  if (combine.prepare != nullptr) {
    prepared = cohort::detail::borrowed_buffer(c.engine().scratch(), offsets.back());
    std::size_t at = 0;
    in.each_piece(0, ch.size(), [&](const std::byte* data, std::size_t n) {
      contribute(combine, data, prepared.data() + at, n / sizeof(T), ch.size());
      at += n;
    });
    where.in = layout::by_offsets(prepared.data(), offsets.data(), ch.size());
  }
  bool done = false;
  if constexpr (transport::native_reduce_scatter<Transport, T, Op>) {
    using library = transport::native_collectives<Transport>;
    if (c.signature().algorithm == algorithm::native && library::fits(where.in)) {
      co_await library::reduce_scatter(c, where.in, where.out, combine);
      done = true;
    }
  }
  if (!done) co_await reduce_scatter_by(ch, c.signature().algorithm, where, offsets, combine);
  out.each_piece(0, 1, [&](std::byte* data, std::size_t n) { conclude(combine, data, n / sizeof(T), ch.size()); });
}

/// `in` has a block for each rank, none longer than `longest` bytes; `out` is one block, of the size of this rank's.
template <transport::message_transport Transport, class T, class Op>
operation<> reduce_scatter(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t longest, Op op,
                           block_table& keep) {
  if constexpr (transport::sharing_transport<Transport>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (reduce_scatter_at_once(t, in, out, longest, combine)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if constexpr (transport::native_reduce_scatter<Transport, T, Op>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (now.reduce_scatter(in, out, combine)) {
      const transport::piece mine = out.together(0, 1);
      conclude(combine, mine.data, mine.bytes / sizeof(T), t.home->size());
      return operation<>::completed({});
    }
  }
  return reduce_scatter_in_frame<Transport, T, Op>(std::move(t), in, out, offsets_of(in), std::move(op),
                                                   std::move(keep));
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/reduce_scatter.hpp>
#include <cohort/collective/impl/offsets_of.hpp>
#endif
