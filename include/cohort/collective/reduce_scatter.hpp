// SPDX-License-Identifier: BSL-1.0
// The reduce-scatter: everybody's vectors combined, each rank left with its own block of the result. Called by
// communicator/everyone.hpp.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/reduce_scatter.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/combine.hpp>

namespace cohort::collective {

template <class Channel, schedule Schedule>
task<> reduce_scatter_in(const Channel& ch, Schedule steps, layouts where, detail::short_vector<std::size_t> offsets,
                         const cohort::detail::reducer& op) {
  // The scratch space is cut like the input, whose blocks may differ in size.
  const bool scratched = steps.work_blocks() > 0;
  const cohort::detail::borrowed_buffer scratch(ch.transport().scratch(), scratched ? offsets.back() : 0);
  if (scratched) where.work = layout::by_offsets(scratch.data(), offsets.data(), steps.work_blocks());
  co_await execute(ch, steps, where, &op);
}

/// Where its blocks would begin and end, in bytes, if they lay one after the other.
[[nodiscard]] inline detail::short_vector<std::size_t> offsets_of(const layout& blocks) {
  detail::short_vector<std::size_t> offsets(static_cast<std::size_t>(blocks.blocks()) + 1);
  for (std::size_t k = 0; k + 1 < offsets.size(); ++k)
    offsets[k + 1] = offsets[k] + blocks.bytes(static_cast<int>(k), 1);
  return offsets;
}

[[nodiscard]] inline std::size_t longest_block(const detail::short_vector<std::size_t>& offsets) noexcept {
  std::size_t longest = 0;
  for (std::size_t k = 0; k + 1 < offsets.size(); ++k) longest = std::max(longest, offsets[k + 1] - offsets[k]);
  return longest;
}

template <class Channel>
task<> reduce_scatter_shared(const Channel& ch, const layouts& where, detail::short_vector<std::size_t> offsets,
                             const cohort::detail::reducer& op);

template <class Channel>
task<> reduce_scatter_by(const Channel& ch, algorithm how, const layouts& where,
                         detail::short_vector<std::size_t> offsets, const cohort::detail::reducer& op) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return reduce_scatter_shared(ch, where, std::move(offsets), op);
    if (how == algorithm::hierarchical) {
      const two_level_reduce_scatter steps{columns{hosts_of(ch), r}};
      return reduce_scatter_in(ch, steps, where, std::move(offsets), op);
    }
  }
  switch (how) {
    case algorithm::circulant:
      return reduce_scatter_in(ch, circulant_reduce_scatter{p, r}, where, std::move(offsets), op);
    case algorithm::ring: return reduce_scatter_in(ch, ring_reduce_scatter{p, r}, where, std::move(offsets), op);
    case algorithm::pairwise:
      return reduce_scatter_in(ch, pairwise_reduce_scatter{p, r}, where, std::move(offsets), op);
    default: return reduce_scatter_in(ch, halving_reduce_scatter{p, r}, where, std::move(offsets), op);
  }
}

template <class Channel>
task<> reduce_scatter_shared(const Channel& ch, const layouts& where, detail::short_vector<std::size_t> offsets,
                             const cohort::detail::reducer& op) {
  const bool done = co_await reduce_scatter_in_window(ch, where.in, where.out, longest_block(offsets), op);
  if (done) co_return;
  const call& c = ch.current();
  const std::size_t bytes = c.signature().kind == operation_kind::reduce_scatter ? offsets.back() : 0;
  co_await reduce_scatter_by(ch, without_window(c, bytes, op.commutative), where, std::move(offsets), op);
}

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
  if constexpr (sharing_transport<Transport>) {
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
