// SPDX-License-Identifier: BSL-1.0
// The scans of long vectors by ranks that share memory: each rank adds what it has to what those before it have come to, and leaves
// that for the one behind it. So each reads two vectors, however many ranks there are, and what stands in a slot has one
// reader, who hands it back. Used by combine.hpp of this folder.
#pragma once

#include <cohort/collective/shared/copy.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/shm/window_use.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cohort::collective {

/// Whether a scan goes along a chain. Else each rank reads what all before it have, and waits but once.
[[nodiscard]] constexpr bool is_chained_scan(std::size_t bytes, int ranks) noexcept {
  constexpr std::size_t shortest = std::size_t{16} << 10;
  return ranks > 2 && bytes >= shortest;
}

/// How a chained scan is cut: so much is in a slot at a time, and so much of it is handed on at a time. Whole elements, at least one.
struct chained_scan_parts {
  std::size_t step;
  std::size_t piece;
  chained_scan_parts(std::size_t capacity, std::size_t element_bytes) noexcept {
    // The slots of two steps, and what goes there, stay in a rank's own cache.
    constexpr std::size_t in_steps = std::size_t{256} << 10;
    constexpr std::size_t in_pieces = std::size_t{8} << 10;
    step = std::max(whole_elements(std::min(capacity, in_steps), element_bytes), element_bytes);
    piece = std::max(whole_elements(in_pieces, element_bytes), element_bytes);
  }
};

/// Combines what ranks 0 .. last hold into `out`, where `last` is this rank, or the one before it if `exclusive`.
///
/// Shapes: in, out: `bytes` bytes each, more than none; of an exclusive scan rank 0 leaves out as it is
/// Needs:  `use` has its turn, is open and announced; out is in, or apart from it
/// Order:  that of the ranks, always
template <class Use = transport::window_use>
task<> scan_along_chain(Use& use, const std::byte* in, std::byte* out, std::size_t bytes, bool exclusive,
                        const cohort::detail::reducer& op) {
  const int p = use.size();
  const int r = use.rank();
  const bool last = r == p - 1;
  const chained_scan_parts parts(use.capacity(), op.element_bytes);
  const bool streaming = vectors_exceed_caches(bytes, p);
  const layout result = layout::uniform(out, bytes, 1);
  operands both(2);
  for (std::size_t from = 0; from < bytes; from += parts.step) {
    const std::size_t end = std::min(bytes, from + parts.step);
    for (int k = 1; k < p && !last; ++k) co_await use.left_by(use.other(k));
    use.raise();
    for (int k = r - 1; k >= 0; --k) co_await use.arrived(k);
    for (std::size_t at = from; at < end; at += parts.piece) {
      const std::size_t here = std::min(parts.piece, end - at);
      std::byte* const mine = use.mine() + (at - from);
      if (r == 0) {
        std::memcpy(mine, in + at, here);
        if (!exclusive && in != out) copy_out(mine, result, 0, at, here, streaming);
      } else {
        co_await use.piece_of(r - 1);
        std::byte* const before = use.slot(r - 1) + (at - from);
        both.set([&](int k) { return k == 0 ? before : in + at; });
        if (!last) both.fold(op, 2, mine, here);
        if (exclusive) {
          copy_out(before, result, 0, at, here, streaming);
        } else if (last) {
          both.fold_out(op, 2, result, 0, at, here, streaming);
        } else {
          // Before the next rank reads it, which writes there when it has.
          copy_out(mine, result, 0, at, here, streaming);
        }
        use.hand_back(r - 1, at - from, here);
      }
      use.raise_piece();
    }
    use.end_step();
  }
}

}  // namespace cohort::collective
