// SPDX-License-Identifier: BSL-1.0
// A collective that only moves blocks, carried out where it is called if that is possible. Used by communicator/ and by the headers of
// bodies/ that are named like the operations.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/pair_at_once.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/shared/short_move.hpp>
#include <cohort/collective/short_move.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/sharing_engine.hpp>

namespace cohort::collective {

/// Blocks of one size that lie one after the other: as words beside those of the window, or as messages of two ranks. Tried before a
/// layout is made of them, which a short move needs none of.
///
/// Result: as of the others at once
template <transport::message_transport Transport>
[[nodiscard]] bool short_move_at_once(cohort::detail::ticket& t, const short_move& m) {
  if constexpr (transport::sharing_transport<Transport>) {
    const bool by_window = t.signature.algorithm == algorithm::shared_memory;
    if (by_window && !fits_beside_words(m, t.home->rank(), t.home->size())) return false;
    t.begun.tried = true;
    return by_window ? move_at_once(t, m) : pair_at_once(t).move(m);
  } else {
    return false;
  }
}

/// Blocks wherever they lie, by the move in the window that `make` makes of two layouts.
///
/// Result: as of the others at once
template <class Make>
[[nodiscard]] bool long_move_at_once(cohort::detail::ticket& t, const layout& in, const layout& out, std::size_t block,
                                     const Make& make) {
  return t.signature.algorithm == algorithm::shared_memory && !t.begun.tried && move_at_once(t, in, out, block, make);
}

}  // namespace cohort::collective
