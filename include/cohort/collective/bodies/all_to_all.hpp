// SPDX-License-Identifier: BSL-1.0
// What collective/all_to_all.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/all_to_all.hpp>
#include <cohort/collective/bodies/gather.hpp>
#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/move_at_once.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/schedule/all_to_all.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

[[nodiscard]] inline window_move all_to_all_move(const transport::signature& s, const layouts& where,
                                                 std::size_t block_bytes) {
  window_move m;
  m.in = where.in;
  m.out = where.out;
  m.in_by_rank = true;
  m.out_by_rank = true;
  m.sizes_are_known = s.kind == operation_kind::all_to_all;
  m.longest = block_bytes;
  m.has_own = true;
  return m;
}

template <class Channel>
task<> all_to_all_shared(const Channel& ch, const layouts& where, std::size_t block_bytes);

template <class Channel>
task<> all_to_all_by(const Channel& ch, algorithm how, const layouts& where, std::size_t block_bytes) {
  const int p = ch.size();
  const int r = ch.rank();
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return all_to_all_shared(ch, where, block_bytes);
  }
  if constexpr (transport::native_all_to_all<typename Channel::transport_type>) {
    using library = transport::native_collectives<typename Channel::transport_type>;
    if (how == algorithm::native && library::fits(block_bytes, p))
      return library::all_to_all(ch.current(), where.in, where.out);
  }
  if (how == algorithm::bruck) return with_scratch(ch, bruck_all_to_all{p, r}, where, block_bytes);
  if (how == algorithm::central) return with_scratch(ch, central_all_to_all{p, r}, where, block_bytes);
  return execute(ch, pairwise_all_to_all{p, r, exchange_window(block_bytes)}, where, nullptr);
}

template <class Channel>
task<> all_to_all_shared(const Channel& ch, const layouts& where, std::size_t block_bytes) {
  const call& c = ch.current();
  timed_passage way(c, block_bytes, block_bytes);
  const bool done = co_await move_in_window(ch, all_to_all_move(c.signature(), where, block_bytes), &way);
  if (!done) co_await all_to_all_by(ch, without_window(c, block_bytes, true), where, block_bytes);
  way.ended();
}

template <transport::message_transport Transport>
operation<> all_to_all_in_frame([[maybe_unused]] cohort::detail::ticket t, layout in, layout out,
                                std::size_t block_bytes, [[maybe_unused]] block_table keep) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  layouts where;
  where.in = in;
  where.out = out;
  co_await all_to_all_by(ch, c.signature().algorithm, where, block_bytes);
}

template <transport::message_transport Transport>
operation<> all_to_all(cohort::detail::ticket t, const layout& in, const layout& out, std::size_t block_bytes,
                       block_table& keep) {
  if constexpr (transport::sharing_transport<Transport>) {
    const auto make = [&](const layouts& where) { return all_to_all_move(t.signature, where, block_bytes); };
    if (long_move_at_once(t, in, out, block_bytes, make)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if (now.all_to_all(in, out)) return operation<>::completed({});
  return all_to_all_in_frame<Transport>(std::move(t), in, out, block_bytes, std::move(keep));
}

}  // namespace cohort::collective
