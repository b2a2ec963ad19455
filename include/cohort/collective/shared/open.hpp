// SPDX-License-Identifier: BSL-1.0
// The first use of a communicator's window: every rank makes its part and hands it to the others. Either all of them
// see all parts, or all of them know that they do not, and carry the operation out by messages. Used by the other
// headers of this folder.
#pragma once

#include <cohort/task.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/shm/window_use.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::collective {

namespace detail {

/// Makes this rank's part and sends it to everybody, or tells everybody that there is none.
[[nodiscard]] inline bool offer_part(transport::window_use& use) {
  const group& g = use.current().home();
  transport::neighbours& here = *use.transport().host_ranks();
  try {
    const transport::shared_segment& mine = use.window().make_own();
    for (int k = 1; k < use.size(); ++k) {
      here.send(g.world_rank(use.other(k)), transport::letter_kind::window, g.context(), 0, mine);
    }
    use.window().close_own_descriptor();
    return true;
  } catch (const error&) {
    // Some may have got a part: they learn from its status that it is not to be used.
    use.window().close_own_descriptor();
    for (int k = 1; k < use.size(); ++k) {
      here.send(g.world_rank(use.other(k)), transport::letter_kind::refusal, g.context(), 0);
    }
    return false;
  }
}

[[nodiscard]] inline bool accept_part(transport::window_use& use, int from, transport::received_letter& letter) {
  // Who gives no part still waits for what those say that do.
  const int there = use.current().home().world_rank(from);
  use.window().watch_sleep(from, use.transport().host_ranks()->asleep(there));
  if (letter.text.kind != transport::letter_kind::window) return false;
  try {
    use.window().adopt(from, std::move(letter.enclosed));
    return true;
  } catch (const error&) {
    return false;
  }
}

}  // namespace detail

/// Opens the window; every rank gets the same answer.
///
/// Needs:  `use` has its turn
/// Result: false if not every rank sees every part: then it is not tried again
/// Cost:   one letter to each rank and one from each
///
/// The coroutines of this folder are templates because g++ compiles those that are none wherever they are included.
template <class Use = transport::window_use>
task<bool> open_window(Use& use) {
  transport::shm_window& window = use.window();
  const group& g = use.current().home();
  transport::neighbours& here = *use.transport().host_ranks();
  if (window.opened == transport::shm_window::state::refused) co_return false;
  bool complete = detail::offer_part(use);
  for (int k = 1; k < use.size(); ++k) {
    const int from = use.other(k);
    const int there = g.world_rank(from);
    const auto from_it = [&g, there](const transport::letter& l) {
      return l.from == there && l.context == g.context() &&
             (l.kind == transport::letter_kind::window || l.kind == transport::letter_kind::refusal);
    };
    for (;;) {
      const std::uint32_t before = here.arrivals().load(std::memory_order_relaxed);
      std::optional<transport::received_letter> letter = here.take(from_it);
      if (letter) {
        complete = detail::accept_part(use, from, *letter) && complete;
        break;
      }
      co_await use.reach(here.arrivals(), before + 1, from);
    }
  }
  constexpr std::uint32_t all_seen = 1;
  constexpr std::uint32_t not_all = 2;
  if (window.has_part(use.rank())) {
    window.head(use.rank()).status.store(complete ? all_seen : not_all, std::memory_order_release);
    use.wake();
  }
  for (int k = 1; k < use.size(); ++k) {
    const int from = use.other(k);
    if (!window.has_part(from)) {
      // That it has none is known, and decides. What it waits for it has when this rank goes on.
      while (here.has_waiting(g.world_rank(from))) {
        const std::uint32_t before = here.departures().load(std::memory_order_relaxed);
        co_await use.reach(here.departures(), before + 1, from);
      }
      continue;
    }
    co_await use.reach(window.head(from).status, all_seen, from);
    complete = complete && window.head(from).status.load(std::memory_order_acquire) == all_seen;
  }
  window.opened = complete ? transport::shm_window::state::open : transport::shm_window::state::refused;
  co_return complete;
}

/// Waits for ranks that are too far behind, and for those that still read; needed when `use.may_begin()` is false.
template <class Use = transport::window_use>
task<> wait_to_begin(Use& use) {
  for (int k = 1; k < use.size(); ++k) co_await use.follower(use.other(k));
  for (int k = 1; k < use.size(); ++k) co_await use.left_by(use.other(k));
}

}  // namespace cohort::collective
