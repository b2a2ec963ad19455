// SPDX-License-Identifier: BSL-1.0
// A collective that only moves blocks, carried out where it is called if that is possible. Used by the headers of bodies/ that
// are named like the operations.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/pair_at_once.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/shared/short_move.hpp>
#include <cohort/collective/short_move.hpp>

namespace cohort::collective {

/// Blocks of one size if the collective is of the kind `even`, wherever they lie: as words beside those of the window, as the
/// move in the window that `make` makes of two layouts, or as messages of two ranks.
///
/// Result: as of the others at once
template <class Make>
[[nodiscard]] bool move_at_once(cohort::detail::ticket& t, operation_kind even, const short_move& m, const layout& in,
                                const layout& out, const Make& make) {
  if (t.signature.algorithm != algorithm::shared_memory) return t.signature.kind == even && pair_at_once(t).move(m);
  if (t.signature.kind == even && fits_beside_words(m, t.home->rank(), t.home->size())) return move_at_once(t, m);
  return move_at_once(t, in, out, m.block, make);
}

}  // namespace cohort::collective
