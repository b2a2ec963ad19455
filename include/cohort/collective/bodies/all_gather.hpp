// SPDX-License-Identifier: BSL-1.0
// What collective/all_gather.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/all_gather.hpp>
#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/hierarchical.hpp>
#include <cohort/collective/move_at_once.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/all_gather.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/window.hpp>

#include <algorithm>

namespace cohort::collective {

/// Without `in` a rank's own block is in its place already.
[[nodiscard]] inline window_move all_gather_move(const layouts& where, int rank) {
  window_move m;
  m.has_own = where.in.blocks() > 0;
  m.in = m.has_own ? where.in : where.out;
  m.out = where.out;
  m.in_block = m.has_own ? 0 : rank;
  m.out_by_rank = true;
  for (int k = 0; k < where.out.blocks(); ++k) m.longest = std::max(m.longest, where.out.bytes(k, 1));
  return m;
}

/// The other one of two ranks can have this rank's long block out of the input: what was just written to its place stands in this
/// core's cache, and comes slower from there.
///
/// Needs: the block is in its place
[[nodiscard]] inline own_operand own_block(const layouts& where, int rank) {
  if (where.in.blocks() == 0 || where.out.blocks() != 2) return {};
  const transport::piece from = where.in.together(0, 1);
  const transport::piece to = where.out.together(rank, 1);
  const transport::piece other = where.out.together(1 - rank, 1);
  if (from.data == nullptr || to.data == nullptr || other.data == nullptr || from.bytes < detail::shortest_put_off)
    return {};
  if (overlap(from, to) || overlap(from, other)) return {};
  return {to.data, from.data, from.bytes, false};
}

template <class Channel>
task<> all_gather_shared(const Channel& ch, const layouts& where);

template <class Channel>
task<> all_gather_by(const Channel& ch, algorithm how, const layouts& where) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return all_gather_shared(ch, where);
    if (how == algorithm::hierarchical) return all_gather_on_hosts(ch, where);
  }
  if constexpr (transport::native_all_gather<typename Channel::transport_type>) {
    using library = transport::native_collectives<typename Channel::transport_type>;
    if (how == algorithm::native && library::fits(where.out)) return library::all_gather(ch.current(), where.out);
  }
  switch (how) {
    case algorithm::ring: return execute(ch, ring_all_gather{p, r}, where, nullptr);
    case algorithm::linear: return execute(ch, linear_all_gather{p, r}, where, nullptr);
    case algorithm::central: return execute(ch, central_all_gather{p, r}, where, nullptr);
    default: return execute(ch, circulant_all_gather{p, r}, where, nullptr, own_block(where, r));
  }
}

template <class Channel>
task<> all_gather_shared(const Channel& ch, const layouts& where) {
  const std::size_t bytes = where.out.bytes(0, where.out.blocks());
  const window_move m = all_gather_move(where, ch.rank());
  timed_passage way(ch.current(), bytes, m.longest);
  const bool done = co_await move_in_window(ch, m, &way);
  if (!done) {
    if (where.in.blocks() > 0)
      detail::copy_region(where.in, {buffer::in, 0, 1}, where.out, {buffer::out, ch.rank(), 1});
    co_await all_gather_by(ch, without_window(ch.current(), bytes, true), where);
  }
  way.ended();
}

template <transport::message_transport Transport>
operation<> all_gather_in_frame([[maybe_unused]] cohort::detail::ticket t, layout in, layout out,
                                [[maybe_unused]] block_table keep) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  layouts where;
  where.in = in;
  where.out = out;
  if (c.signature().algorithm != algorithm::shared_memory) {
    detail::copy_region(in, {buffer::in, 0, 1}, out, {buffer::out, ch.rank(), 1});
  }
  co_await all_gather_by(ch, c.signature().algorithm, where);
}

template <transport::message_transport Transport>
operation<> all_gather(cohort::detail::ticket t, const layout& in, const layout& out, block_table& keep) {
  if constexpr (transport::sharing_transport<Transport>) {
    const auto make = [&](const layouts& where) { return all_gather_move(where, t.home->rank()); };
    if (long_move_at_once(t, in, out, in.bytes(0, 1), make)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if (now.all_gather(in, out)) return operation<>::completed({});
  return all_gather_in_frame<Transport>(std::move(t), in, out, std::move(keep));
}

}  // namespace cohort::collective
