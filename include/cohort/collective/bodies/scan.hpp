// SPDX-License-Identifier: BSL-1.0
// What collective/scan.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/execute.hpp>
#include <cohort/collective/scan.hpp>
#include <cohort/collective/schedule/scan.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/shared/combine.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

template <class Channel>
task<bool> scan_shared(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                       const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  return scan_in_window(ch, layout::uniform(in, bytes, 1), layout::uniform(out, bytes, 1), bytes, false, op);
}

/// The contributions of ranks 0 .. r in place of rank r's own, by messages.
template <class Channel>
task<> scan_by_messages(const Channel& ch, algorithm how, whole_vector& all, const cohort::detail::reducer& op) {
  const int p = ch.size();
  if (how == algorithm::chain) {
    const int segments = pipeline_segments(how, all.count * all.element_bytes, p);
    return execute_in_place(ch, chain_scan{p, ch.rank(), segments}, all, &op);
  }
  return execute_in_place(ch, recursive_doubling_scan{p, ch.rank()}, all, &op);
}

template <class Channel>
task<> scan_in_place(const Channel& ch, whole_vector& all, const cohort::detail::reducer& op) {
  const std::size_t bytes = all.count * all.element_bytes;
  const bool done = co_await scan_in_window(ch, all.cut(1), all.cut(1), bytes, false, op);
  if (!done) co_await scan_by_messages(ch, without_window(ch.current(), bytes, false), all, op);
}

template <class Channel>
task<> scan_by(const Channel& ch, algorithm how, whole_vector& all, const cohort::detail::reducer& op) {
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return scan_in_place(ch, all, op);
  }
  return scan_by_messages(ch, how, all, op);
}

template <class Channel>
task<> exclusive_scan_by_messages(const Channel& ch, algorithm how, std::byte* in, std::byte* out, std::size_t count,
                                  const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  const recursive_doubling_exclusive_scan doubling{ch.size(), ch.rank()};
  const int segments = pipeline_segments(how, bytes, ch.size());
  const chain_exclusive_scan chain{ch.size(), ch.rank(), segments};
  const bool chained = how == algorithm::chain;
  const int vectors = chained ? (chain.work_blocks() > 0 ? 1 : 0) : doubling.work_blocks();
  const cohort::detail::borrowed_buffer scratch(ch.transport().scratch(), static_cast<std::size_t>(vectors) * bytes);
  layouts where;
  if (chained) {
    where.in = layout::even(in, count, op.element_bytes, segments);
    where.out = layout::even(out, count, op.element_bytes, segments);
    where.work = layout::even(scratch.data(), count, op.element_bytes, segments);
    co_await execute(ch, chain, where, &op);
  } else {
    where.in = layout::uniform(in, bytes, 1);
    where.out = layout::uniform(out, bytes, 1);
    where.work = layout::uniform(scratch.data(), bytes, vectors);
    co_await execute(ch, doubling, where, &op);
  }
}

template <class Channel>
task<> exclusive_scan_shared(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                             const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  const bool done =
      co_await scan_in_window(ch, layout::uniform(in, bytes, 1), layout::uniform(out, bytes, 1), bytes, true, op);
  if (!done) co_await exclusive_scan_by_messages(ch, without_window(ch.current(), bytes, false), in, out, count, op);
}

}  // namespace cohort::collective
