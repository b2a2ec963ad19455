// SPDX-License-Identifier: BSL-1.0
// The reductions of ranks that share memory in which ranks get different results: reduce-scatter and the scans. Called
// by collective/reduce_scatter.hpp and collective/scan.hpp.
#pragma once

#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/open.hpp>

namespace cohort::collective {

/// Combines block r of everybody's `in` into `out` on rank r.
///
/// Shapes: in: a block for each rank, the longest of `longest` bytes; out: one block
/// Order:  that of the ranks, always
template <class Channel, class Otherwise>
task<> reduce_scatter_in_window(Channel ch, layout in, layout out, std::size_t longest,
                                const cohort::detail::reducer& op, Otherwise otherwise) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  const auto ranks = static_cast<std::size_t>(use.size());
  co_await use.turn();
  bool open = op.element_bytes <= use.capacity() / ranks;
  if (open && !use.open()) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_await otherwise();
    co_return;
  }
  const int p = use.size();
  const int r = use.rank();
  operands sources(p);
  if (!use.may_begin()) co_await wait_to_begin(use);
  use.announce();
  const bool tiny = longest <= transport::shm_window::inline_bytes / ranks;
  const std::size_t chunk = whole_elements(use.capacity() / ranks, op.element_bytes);
  for (std::size_t at = 0; at == 0 || at < longest; at += chunk) {
    const std::size_t here = std::min(chunk, longest - at);
    for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
    const auto memory = [&use, tiny](int k) { return tiny ? use.short_data(k) : use.slot(k); };
    // This rank's own block too, so that its operand is where those of the others are; nobody else reads it.
    for (int k = 0; k < p; ++k) copy_in(in, k, at, here, memory(r) + static_cast<std::size_t>(k) * here);
    use.raise();
    for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
    sources.set([&](int k) { return memory(k) + static_cast<std::size_t>(r) * here; });
    sources.fold_out(op, p, out, 0, at, here, longest > streaming_bytes);
    use.end_step();
  }
  use.finish();
}

/// Combines what ranks 0 .. last hold into `out`, where `last` is this rank, or the one before it if `exclusive`.
///
/// Shapes: in, out: one block of `bytes` bytes; where there is nothing to combine out is left as it is
template <class Channel, class Otherwise>
task<> scan_in_window(Channel ch, layout in, layout out, std::size_t bytes, bool exclusive,
                      const cohort::detail::reducer& op, Otherwise otherwise) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  co_await use.turn();
  bool open = op.element_bytes <= use.capacity();
  if (open && !use.open()) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_await otherwise();
    co_return;
  }
  const int p = use.size();
  const int r = use.rank();
  const int count = exclusive ? r : r + 1;
  operands sources(p);
  if (!use.may_begin()) co_await wait_to_begin(use);
  use.announce();
  const bool tiny = bytes <= transport::shm_window::inline_bytes;
  const std::size_t chunk = whole_elements(use.capacity(), op.element_bytes);
  for (std::size_t at = 0; at == 0 || at < bytes; at += chunk) {
    const std::size_t here = std::min(chunk, bytes - at);
    for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
    const auto memory = [&use, tiny](int k) { return tiny ? use.short_data(k) : use.slot(k); };
    copy_in(in, 0, at, here, memory(r));
    use.raise();
    for (int k = r - 1; k >= 0; --k) co_await use.arrived(k);
    if (count > 0) {
      sources.set(memory);
      sources.fold_out(op, count, out, 0, at, here, bytes > streaming_bytes);
    }
    use.end_step();
  }
  use.finish();
}

}  // namespace cohort::collective
