// SPDX-License-Identifier: BSL-1.0
// The reductions of ranks that share memory in which ranks get different results: reduce-scatter and the scans. Called
// by collective/reduce_scatter.hpp and collective/scan.hpp.
#pragma once

#include <cohort/collective/shared/chained_scan.hpp>
#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/open.hpp>
#include <cohort/collective/shared/step_bytes.hpp>

namespace cohort::collective {

/// Bytes of every block of a reduce-scatter that go over in one step; 0: the window has no room for one element.
[[nodiscard]] inline std::size_t reduce_scatter_chunk(std::size_t capacity, std::size_t ranks,
                                                      std::size_t element_bytes) noexcept {
  const std::size_t room = capacity / ranks;
  const bool shorter = ranks == 2 && element_bytes <= common_step;
  return whole_elements(shorter ? std::min(room, common_step) : room, element_bytes);
}

/// Combines block r of everybody's `in` into `out` on rank r.
///
/// Shapes: in: a block for each rank, the longest of `longest` bytes; out: one block
/// Result: false, on every rank, if the window cannot be opened: nothing has been combined
/// Order:  that of the ranks, always
template <class Channel>
task<bool> reduce_scatter_in_window(Channel ch, layout in, layout out, std::size_t longest,
                                    const cohort::detail::reducer& op) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  const auto ranks = static_cast<std::size_t>(use.size());
  co_await use.turn();
  bool open = op.element_bytes <= use.capacity() / ranks;
  if (open && !use.open()) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_return false;
  }
  const int p = use.size();
  const int r = use.rank();
  operands sources(p);
  const bool tiny = longest <= transport::shm_window::inline_bytes / ranks;
  use.goes_round(longest * ranks);
  if (!use.begun()) {
    if (tiny) use.stays_short();
    if (!use.may_begin()) co_await wait_to_begin(use);
    use.announce();
  }
  const std::size_t chunk = reduce_scatter_chunk(use.capacity(), ranks, op.element_bytes);
  const bool streaming = exceeds_caches(ranks * (ranks + 1) * longest);
  // Nobody else reads this rank's own block: where it is one run, it is combined from where it is.
  const std::byte* const own = in.together(r, 1).data;
  for (std::size_t at = 0; at == 0 || at < longest; at += chunk) {
    const std::size_t here = std::min(chunk, longest - at);
    const auto memory = [&use, tiny](int k) { return tiny ? use.short_data(k) : use.slot(k); };
    if (at > 0 || !use.begun()) {
      for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
      for (int k = 0; k < p; ++k) {
        if (k != r || own == nullptr) copy_in(in, k, at, here, memory(r) + static_cast<std::size_t>(k) * here);
      }
      use.raise();
    }
    for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
    sources.set(
        [&](int k) { return k == r && own != nullptr ? own + at : memory(k) + static_cast<std::size_t>(r) * here; });
    sources.fold_out(op, p, out, 0, at, here, streaming);
    if (!tiny) use.hand_back_all(static_cast<std::size_t>(r) * here, here);
    use.end_step();
  }
  use.finish();
  co_return true;
}

/// Bytes of a scan that are combined in one step: at least one element, if the window has room for it.
[[nodiscard]] inline std::size_t scan_chunk(std::size_t bytes, std::size_t capacity, int ranks,
                                            std::size_t element_bytes) noexcept {
  return std::max(whole_elements(step_of_vectors(bytes, capacity, ranks), element_bytes), element_bytes);
}

/// Combines what ranks 0 .. last hold into `out`, where `last` is this rank, or the one before it if `exclusive`.
///
/// Shapes: in, out: one block of `bytes` bytes; where there is nothing to combine out is left as it is
/// Result: false, on every rank, if the window cannot be opened: nothing has been combined
template <class Channel>
task<bool> scan_in_window(Channel ch, layout in, layout out, std::size_t bytes, bool exclusive,
                          const cohort::detail::reducer& op) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  co_await use.turn();
  bool open = op.element_bytes <= use.capacity();
  if (open && !use.open()) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_return false;
  }
  const int p = use.size();
  const int r = use.rank();
  const int count = exclusive ? r : r + 1;
  operands sources(p);
  const bool tiny = bytes <= transport::shm_window::inline_bytes;
  if (!is_chained_scan(bytes, p)) use.goes_round(bytes);
  if (!use.begun()) {
    if (tiny) use.stays_short();
    if (!use.may_begin()) co_await wait_to_begin(use);
    use.announce();
  }
  const std::byte* const own = in.together(0, 1).data;
  if (is_chained_scan(bytes, p)) {
    std::byte* const result = out.together(0, 1).data;
    co_await scan_along_chain(use, own, result, bytes, exclusive, op);
    use.finish();
    co_return true;
  }
  const std::size_t chunk = scan_chunk(bytes, use.capacity(), p, op.element_bytes);
  const bool streaming = vectors_exceed_caches(bytes, p);
  // Nobody reads what the last rank has, and rank 0's result may be where it is to be.
  const bool unread = !tiny && r == p - 1 && own != nullptr;
  const bool in_place = count == 1 && r == 0 && own != nullptr && own == out.together(0, 1).data;
  for (std::size_t at = 0; at == 0 || at < bytes; at += chunk) {
    const std::size_t here = std::min(chunk, bytes - at);
    const auto memory = [&use, tiny](int k) { return tiny ? use.short_data(k) : use.slot(k); };
    if (at > 0 || !use.begun()) {
      for (int k = 1; k < p && !unread; ++k) co_await use.left_by(use.other(k));
      if (!unread) copy_in(in, 0, at, here, memory(r));
      use.raise();
    }
    for (int k = r - 1; k >= 0; --k) co_await use.arrived(k);
    if (count > 0 && !in_place) {
      // What this rank has itself it need not read where others do.
      sources.set([&](int k) { return k == r && own != nullptr ? own + at : memory(k); });
      sources.fold_out(op, count, out, 0, at, here, streaming);
      if (p == 2 && r == 1 && !tiny) use.hand_back_all(0, here);
    }
    use.end_step();
  }
  use.finish();
  co_return true;
}

}  // namespace cohort::collective
