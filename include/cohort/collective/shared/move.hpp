// SPDX-License-Identifier: BSL-1.0
// The collectives of ranks that share memory in which nothing is combined: who has something puts it where the others
// see it, and each takes what is for it. Called by the headers of collective/ that are named like the operations.
#pragma once

#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/shared/at_once.hpp>
#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/open.hpp>
#include <cohort/collective/shared/single_copy.hpp>
#include <cohort/collective/shared/timed_passage.hpp>
#include <cohort/collective/shared/window_move.hpp>
#include <cohort/detail/config.hpp>

#include <cstdint>

namespace cohort::collective {

[[nodiscard]] inline window_move broadcast_move(const whole_vector& v, int root) {
  window_move m;
  m.in = m.out = v.cut(1);
  m.giver = root;
  m.longest = v.count * v.element_bytes;
  return m;
}

namespace detail {

/// Puts bytes [at, at + bytes) of every block that this rank gives where the others read them.
inline void give(const window_move& m, const transport::window_step& use, std::size_t at, std::size_t bytes,
                 std::size_t stride, bool tiny) {
  std::byte* const into = tiny ? use.short_data(use.rank()) : use.mine();
  if (!m.in_by_rank) return copy_in(m.in, m.in_block, at, bytes, into);
  for (int k = 0; k < use.size(); ++k) {
    if (k != use.rank()) copy_in(m.in, k, at, bytes, into + static_cast<std::size_t>(k) * stride);
  }
}

/// Where in the part of rank `from` this rank finds what is for it, when blocks are so far from each other.
[[nodiscard]] inline std::size_t place_of(const window_move& m, const transport::window_step& use,
                                          std::size_t stride) noexcept {
  return m.in_by_rank ? static_cast<std::size_t>(use.rank()) * stride : 0;
}

inline void take(const window_move& m, const transport::window_step& use, int from, std::size_t at, std::size_t bytes,
                 std::size_t stride, bool tiny, bool streaming, cohort::detail::readers who) {
  std::byte* const part = tiny ? use.short_data(from) : use.slot(from);
  copy_out(part + place_of(m, use, stride), m.out, m.out_by_rank ? from : 0, at, bytes, streaming, who);
}

/// How many bytes this rank gives to each other, and the most of them, for all to read.
[[nodiscard]] inline std::size_t tell_sizes(const window_move& m, const transport::window_step& use, bool gives) {
  std::uint64_t most = 0;
  std::byte* into = use.mine();
  for (int k = 0; k < use.size(); ++k, into += sizeof most) {
    const std::uint64_t size = gives && k != use.rank() ? m.in.bytes(m.in_by_rank ? k : m.in_block, 1) : 0;
    most = std::max(most, size);
    std::memcpy(into, &size, sizeof size);
  }
  std::memcpy(into, &most, sizeof most);
  return static_cast<std::size_t>(most);
}

/// The longest block of rank `from`; that for this rank must have the size of the place where it goes.
inline std::size_t check_sizes(const window_move& m, const transport::window_use& use, int from, bool for_this) {
  const auto number = [&use, from](int at) {
    std::uint64_t n = 0;
    std::memcpy(&n, use.slot(from) + static_cast<std::size_t>(at) * sizeof n, sizeof n);
    return static_cast<std::size_t>(n);
  };
  if (for_this) {
    const std::size_t given = number(use.rank());
    const std::size_t expected = m.out.bytes(m.out_by_rank ? from : 0, 1);
    if (given != expected) {
      call& c = use.current();
      const group& g = c.home();
      const std::string what = transport::describe(c.signature());
      c.engine().report_mismatch(g, c.sequence(), g.world_rank(from), errc::mismatch,
                                 transport::describe_count_disagreement(from, given, g.rank(), expected, what));
      throw c.failure();
    }
  }
  return number(use.size());
}

}  // namespace detail

/// Carries a move out that needs no more than one step, if that can be done without a frame.
///
/// Result: false: a frame must carry it out, from the beginning or from where this has left it
COHORT_ALIGNED [[nodiscard]] inline bool move_at_once(const cohort::detail::ticket& t, const window_move& m) {
  const int p = t.home->size();
  if (!may_be_at_once(t, m.longest) || !m.sizes_are_known) return false;
  const bool tiny = m.tiny(p);
  if (!tiny && m.longest > m.chunk(*t.home, t.home->window->slot_bytes())) return false;
  step_at_once now(t);
  if (!now.begin(tiny, m.in_a_slot(p))) return false;
  const transport::window_step& step = now.step();
  const std::size_t stride = m.stride(m.longest, tiny);
  if (m.is_given_by(step.rank())) {
    detail::give(m, step, 0, m.longest, stride, tiny);
    now.gives(m.longest);
  }
  now.raise();
  m.copy_own(step.rank(), 0, m.longest);
  if (m.giver < 0 && m.taker < 0 && !now.joined_in_turn()) return false;
  using cohort::detail::readers;
  const readers who = m.read_by(step.window());
  // A frame reads all of it again: what this rank alone reads is there until the end.
  const readers until_then = who == readers::one ? readers::many : who;
  for (int k = 1; k < p; ++k) {
    const int from = step.other(k);
    if (!m.goes(from, step.rank())) continue;
    if (!now.raised_by(from)) return false;
    detail::take(m, step, from, 0, m.longest, stride, tiny, false, until_then);
  }
  for (int k = 1; k < p && who == readers::one; ++k) {
    if (m.goes(step.other(k), step.rank())) step.hand_back(step.other(k), detail::place_of(m, step, stride), m.longest);
  }
  now.end();
  return true;
}

/// The same of a collective that moves blocks of up to `bytes` between two layouts, which `make` turns into its move on
/// this rank.
template <class Make>
[[nodiscard]] bool move_at_once(const cohort::detail::ticket& t, const layout& in, const layout& out, std::size_t bytes,
                                const Make& make) {
  if (!may_be_at_once(t, bytes)) return false;
  layouts where;
  where.in = in;
  where.out = out;
  return move_at_once(t, make(where));
}

/// Carries a move out, unless there is a `way` that is open, and it goes by messages.
///
/// Result: false, on every rank, if it does, or the window cannot be opened: nothing has been moved
/// Cost:   blocks that together have up to 96 bytes cost two cache lines from each rank; longer ones are copied twice, or once where
///         the `way` is to read them where they lie
template <class Channel>
task<bool> move_in_window(Channel ch, window_move m, timed_passage* way = nullptr) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  co_await use.turn();
  bool open = use.open();
  if (!open) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_return false;
  }
  const int p = use.size();
  const bool gives = m.is_given_by(use.rank());
  const bool takes = m.is_taken_by(use.rank());
  const bool either = way != nullptr && way->open();
  const bool to_agree = either && way->begin();
  if (either && !to_agree && way->past_the_window()) {
    use.finish();
    co_return false;
  }
  if (!use.begun()) {
    if (m.tiny(p)) use.stays_short();
    if (!use.may_begin()) co_await wait_to_begin(use);
    use.announce();
  }
  if (to_agree) {
    const int judge = way->judge();
    if (use.rank() == judge) way->tell(use);
    use.raise();
    if (use.rank() != judge) {
      co_await use.arrived(judge);
      way->hear(use);
    }
    use.end_step();
    if (way->past_the_window()) {
      use.finish();
      co_return false;
    }
    use.keep_slot();
  }
  if (either && way->by_single_copy()) {
    if (co_await move_by_single_copy(use, m)) {
      use.finish();
      co_return true;
    }
    way->refused();
  }

  if (!m.sizes_are_known) {
    m.longest = detail::tell_sizes(m, use, gives);
    use.raise();
    for (int k = 1; k < p; ++k) {
      const int from = use.other(k);
      co_await use.arrived(from);
      const bool for_this = takes && (m.giver < 0 || m.giver == from);
      m.longest = std::max(m.longest, detail::check_sizes(m, use, from, for_this));
    }
    use.end_step();
  }

  const bool tiny = m.tiny(p);
  const std::size_t chunk = m.chunk(c.home(), use.capacity());
  const bool streaming = exceeds_caches(m.bytes_on_host(p));
  const cohort::detail::readers who = m.read_by(use.window());
  if (m.sizes_are_known && !tiny) use.goes_round(m.in_a_slot(p));
  for (std::size_t at = 0; at == 0 || at < m.longest; at += chunk) {
    const std::size_t here = std::min(chunk, m.longest - at);
    const std::size_t stride = m.stride(here, tiny);
    if (at > 0 || !use.begun()) {
      for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
      if (gives) detail::give(m, use, at, here, stride, tiny);
      use.raise();
    }
    m.copy_own(use.rank(), at, here);
    for (int k = 1; k < p; ++k) {
      const int from = use.other(k);
      if (!m.goes(from, use.rank())) continue;
      co_await use.arrived(from);
      detail::take(m, use, from, at, here, stride, tiny, streaming, who);
    }
    use.end_step();
  }
  m.copy_own(use.rank(), m.longest, ~std::size_t{0});  // where sizes are told, it may be longer than all that were
  use.finish();
  co_return true;
}

}  // namespace cohort::collective
