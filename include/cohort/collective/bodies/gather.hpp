// SPDX-License-Identifier: BSL-1.0
// What collective/gather.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/gather.hpp>
#include <cohort/collective/move_at_once.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/gather.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

template <class Channel, schedule Schedule>
task<> with_scratch(const Channel& ch, Schedule steps, layouts where, std::size_t block_bytes) {
  const int blocks = steps.work_blocks();
  const cohort::detail::borrowed_buffer scratch(ch.transport().scratch(),
                                                static_cast<std::size_t>(blocks) * block_bytes);
  where.work = layout::uniform(scratch.data(), block_bytes, blocks);
  co_await execute(ch, steps, where, nullptr);
}

[[nodiscard]] inline window_move gather_move(const transport::signature& s, int rank, const layouts& where,
                                             std::size_t block_bytes) {
  window_move m;
  m.in = where.in;
  m.out = where.out;
  m.out_by_rank = true;
  m.taker = s.root;
  m.sizes_are_known = s.kind == operation_kind::gather;
  m.longest = block_bytes;
  m.has_own = rank == m.taker;
  return m;
}

template <class Channel>
task<> gather_shared(const Channel& ch, int root, const layouts& where, std::size_t block_bytes);

template <class Channel>
task<> gather_by(const Channel& ch, algorithm how, int root, const layouts& where, std::size_t block_bytes) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return gather_shared(ch, root, where, block_bytes);
  }
  if constexpr (transport::native_gather<typename Channel::transport_type>) {
    using library = transport::native_collectives<typename Channel::transport_type>;
    if (how == algorithm::native && library::fits(block_bytes, p))
      return library::gather(ch.current(), root, where.in, where.out);
  }
  if (how == algorithm::binomial) return with_scratch(ch, binomial_gather{p, r, root}, where, block_bytes);
  return execute(ch, linear_gather{p, r, root}, where, nullptr);
}

template <class Channel>
task<> gather_shared(const Channel& ch, int root, const layouts& where, std::size_t block_bytes) {
  const call& c = ch.current();
  const bool done = co_await move_in_window(ch, gather_move(c.signature(), ch.rank(), where, block_bytes));
  if (!done) co_await gather_by(ch, without_window(c, block_bytes, true), root, where, block_bytes);
}

template <transport::message_transport Transport>
operation<> gather_in_frame([[maybe_unused]] cohort::detail::ticket t, layout in, layout out, std::size_t block_bytes,
                            [[maybe_unused]] block_table keep) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  layouts where;
  where.in = in;
  where.out = out;
  co_await gather_by(ch, c.signature().algorithm, c.signature().root, where, block_bytes);
}

template <transport::message_transport Transport>
operation<> gather(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t block_bytes,
                   block_table& keep) {
  if constexpr (transport::sharing_transport<Transport>) {
    const auto make = [&](const layouts& where) {
      return gather_move(t.signature, t.home->rank(), where, block_bytes);
    };
    if (long_move_at_once(t, in, out, block_bytes, make)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if (now.gather(in, out)) return operation<>::completed({});
  return gather_in_frame<Transport>(std::move(t), in, out, block_bytes, std::move(keep));
}

}  // namespace cohort::collective
