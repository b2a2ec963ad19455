// SPDX-License-Identifier: BSL-1.0
// What collective/scatter.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/bodies/gather.hpp>
#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/move_at_once.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/scatter.hpp>
#include <cohort/collective/schedule/scatter.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

[[nodiscard]] inline window_move scatter_move(const transport::signature& s, int rank, const layouts& where,
                                              std::size_t block_bytes) {
  window_move m;
  m.in = where.in;
  m.out = where.out;
  m.in_by_rank = true;
  m.giver = s.root;
  m.sizes_are_known = s.kind == operation_kind::scatter;
  m.longest = block_bytes;
  m.has_own = rank == m.giver;
  return m;
}

template <class Channel>
task<> scatter_shared(const Channel& ch, int root, const layouts& where, std::size_t block_bytes);

template <class Channel>
task<> scatter_by(const Channel& ch, algorithm how, int root, const layouts& where, std::size_t block_bytes) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return scatter_shared(ch, root, where, block_bytes);
  }
  if constexpr (transport::native_scatter<typename Channel::transport_type>) {
    using library = transport::native_collectives<typename Channel::transport_type>;
    if (how == algorithm::native && library::fits(block_bytes, p))
      return library::scatter(ch.current(), root, where.in, where.out);
  }
  if (how == algorithm::binomial) return with_scratch(ch, binomial_scatter{p, r, root}, where, block_bytes);
  return execute(ch, linear_scatter{p, r, root}, where, nullptr);
}

template <class Channel>
task<> scatter_shared(const Channel& ch, int root, const layouts& where, std::size_t block_bytes) {
  const call& c = ch.current();
  timed_passage way(c, block_bytes, block_bytes);
  const bool done = co_await move_in_window(ch, scatter_move(c.signature(), ch.rank(), where, block_bytes), &way);
  if (!done) co_await scatter_by(ch, without_window(c, block_bytes, true), root, where, block_bytes);
  way.ended();
}

template <transport::message_transport Transport>
operation<> scatter_in_frame([[maybe_unused]] cohort::detail::ticket t, layout in, layout out, std::size_t block_bytes,
                             [[maybe_unused]] block_table keep) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  layouts where;
  where.in = in;
  where.out = out;
  co_await scatter_by(ch, c.signature().algorithm, c.signature().root, where, block_bytes);
}

template <transport::message_transport Transport>
operation<> scatter(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t block_bytes,
                    block_table& keep) {
  if constexpr (transport::sharing_transport<Transport>) {
    const auto make = [&](const layouts& where) {
      return scatter_move(t.signature, t.home->rank(), where, block_bytes);
    };
    if (long_move_at_once(t, in, out, block_bytes, make)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if (now.scatter(in, out)) return operation<>::completed({});
  return scatter_in_frame<Transport>(std::move(t), in, out, block_bytes, std::move(keep));
}

}  // namespace cohort::collective
