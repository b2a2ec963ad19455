// SPDX-License-Identifier: BSL-1.0
// What collective/scan.hpp does that no element type changes: which schedule carries the operation out, or the window.
#pragma once

#include <cohort/collective/execute.hpp>
#include <cohort/collective/scan.hpp>
#include <cohort/collective/schedule/scan.hpp>
#include <cohort/collective/shared/combine.hpp>

namespace cohort::collective {

template <class Channel>
task<bool> scan_shared(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                       const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  return scan_in_window(ch, layout::uniform(in, bytes, 1), layout::uniform(out, bytes, 1), bytes, false, op);
}

/// The contributions of ranks 0 .. r in place of rank r's own.
template <class Channel>
task<> scan_in_place(const Channel& ch, whole_vector& all, const cohort::detail::reducer& op) {
  const bool done = co_await scan_in_window(ch, all.cut(1), all.cut(1), all.count * all.element_bytes, false, op);
  if (!done) co_await execute_in_place(ch, recursive_doubling_scan{ch.size(), ch.rank()}, all, &op);
}

template <class Channel>
task<> scan_by(const Channel& ch, algorithm how, whole_vector& all, const cohort::detail::reducer& op) {
  if constexpr (sharing_transport<typename Channel::transport_type>) {
    if (how == algorithm::shared_memory) return scan_in_place(ch, all, op);
  }
  return execute_in_place(ch, recursive_doubling_scan{ch.size(), ch.rank()}, all, &op);
}

template <class Channel>
task<> exclusive_scan_by_messages(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                                  const cohort::detail::reducer& op) {
  const recursive_doubling_exclusive_scan steps{ch.size(), ch.rank()};
  const std::size_t bytes = count * op.element_bytes;
  const cohort::detail::borrowed_buffer scratch(ch.transport().scratch(),
                                                static_cast<std::size_t>(steps.work_blocks()) * bytes);
  layouts where;
  where.in = layout::uniform(in, bytes, 1);
  where.out = layout::uniform(out, bytes, 1);
  where.work = layout::uniform(scratch.data(), bytes, steps.work_blocks());
  co_await execute(ch, steps, where, &op);
}

template <class Channel>
task<> exclusive_scan_shared(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                             const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  const bool done =
      co_await scan_in_window(ch, layout::uniform(in, bytes, 1), layout::uniform(out, bytes, 1), bytes, true, op);
  if (!done) co_await exclusive_scan_by_messages(ch, in, out, count, op);
}

}  // namespace cohort::collective
