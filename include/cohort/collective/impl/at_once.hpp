// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/at_once.hpp: one step in the window each, or the messages of two ranks.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/pair_at_once.hpp>
#include <cohort/collective/shared/at_once.hpp>
#include <cohort/collective/shared/combine.hpp>
#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/move.hpp>
#include <cohort/collective/shared/reduce.hpp>
#include <cohort/collective/shared/short_move.hpp>
#include <cohort/collective/short_move.hpp>
#include <cohort/detail/config.hpp>

#include <cstddef>
#include <cstring>

namespace cohort::collective {

static_assert(whole_for_one_bytes >= at_once_bytes, "a frame goes on from where a reduction at once has left it");

namespace detail {

/// An all_reduce of a vector that the ranks combine slice by slice.
COHORT_ALIGNED inline bool slices_at_once(cohort::detail::ticket& t, const std::byte* in, std::byte* out,
                                          std::size_t count, const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  const transport::regions* const reachable =
      static_cast<transport::sharing_engine&>(t.home->engine()).shared_buffers();
  if (may_offer_buffers(bytes, op) && reachable != nullptr && !reachable->empty()) return false;
  step_at_once now(t);
  if (!now.begin(false, bytes)) return false;
  const transport::window_step& step = now.step();
  const int p = step.size();
  const int r = step.rank();
  const slices cut(bytes, p, op.element_bytes);
  const std::size_t own = cut.begin(r);
  const std::byte* mine = in;
  try {
    tell_buffers(step, {});
    if (op.prepare == nullptr) {
      const std::size_t behind = own + cut.size(r);
      std::memcpy(step.mine(), in, own);
      std::memcpy(step.mine() + behind, in + behind, bytes - behind);
    } else {
      op.prepare(op.op, step.mine(), in, count, p);
      mine = step.mine();
    }
    now.raise();
    if (!now.joined_in_turn() || !now.raised_by_all()) return false;
    for (int k = 1; k < p; ++k) {
      if (told_buffers(step, step.other(k)).complete(bytes)) return false;  // all begin again, with frames
    }
    operands sources(p);
    sources.set([&](int k) { return (k == r ? mine : step.slot(k)) + own; });
    sources.fold(op, p, step.mine() + own, cut.size(r));
    using cohort::detail::readers;
    // Short slices of several are read by all of them at the same time: to hand them on takes longer.
    const readers who = p == 2 ? readers_of_slices(op, step.window(), -1) : readers::many;
    const bool own_first = who != readers::many;
    if (own_first) std::memcpy(out + own, step.mine() + own, cut.size(r));
    now.raise_second();
    if (!own_first) std::memcpy(out + own, step.mine() + own, cut.size(r));
    step.hand_back_all(own, cut.size(r));
    for (int k = 1; k < p; ++k) {
      const int from = step.other(k);
      if (!now.second_by(from)) return false;
      std::memcpy(out + cut.begin(from), step.slot(from) + cut.begin(from), cut.size(from));
      cohort::detail::leave(step.slot(from) + cut.begin(from), cut.size(from), who);
    }
    conclude(op, out, count, p);
  } catch (...) {
    now.give_up(t);
    return false;
  }
  now.end();
  return true;
}

}  // namespace detail

COHORT_ALIGNED COHORT_DECL bool reduce_at_once(cohort::detail::ticket& t, const std::byte* in, std::byte* out,
                                               std::size_t count, const cohort::detail::reducer& op, int root) {
  if (t.signature.algorithm != algorithm::shared_memory) return pair_at_once(t).reduce(in, out, count, op, root);
  const int p = t.home->size();
  const std::size_t bytes = count * op.element_bytes;
  if (!may_be_at_once(t, bytes) || p > few_ranks) return false;
  const bool for_one = goes_to_one_of_two(p, root);
  if (!for_one && bytes > whole_vector_bytes(p)) return root < 0 && detail::slices_at_once(t, in, out, count, op);
  const bool tiny = bytes <= transport::shm_window::inline_bytes;
  const bool unread = for_one && root == t.home->rank() && !tiny && op.prepare == nullptr;  // what this rank has
  step_at_once now(t);
  if (!now.begin(tiny, bytes)) return false;
  const transport::window_step& step = now.step();
  const auto data = [&step, tiny](int k) { return tiny ? step.short_data(k) : step.slot(k); };
  try {
    if (!unread) {
      give(op, in, data(step.rank()), count, p);
      now.gives(bytes);
    }
    now.raise();
    if (root < 0 || root == step.rank()) {
      if (!(root < 0 ? now.joined_in_turn() && now.raised_by_all() : now.answered_by_all())) return false;
      const std::byte* at[few_ranks];
      // What this rank has itself it need not read where others do.
      for (int k = 0; k < p; ++k) at[k] = op.prepare == nullptr && k == step.rank() ? in : data(k);
      op.fold_many(op.op, out, at, p, count);
      conclude(op, out, count, p);
      // Unless its writer reads it too.
      const bool alone = root >= 0 || (p == 2 && op.prepare == nullptr);
      if (!tiny && alone) step.hand_back_all(0, bytes);
    }
  } catch (...) {
    now.give_up(t);
    return false;
  }
  now.end();
  return true;
}

/// From here on a rank's own block of a reduce_scatter is left where it is.
inline constexpr std::size_t shortest_apart = 256;

COHORT_ALIGNED COHORT_DECL bool reduce_scatter_at_once(cohort::detail::ticket& t, const layout& in, const layout& out,
                                                       std::size_t longest, const cohort::detail::reducer& op) {
  if (t.signature.algorithm != algorithm::shared_memory) return pair_at_once(t).reduce_scatter(in, out, longest, op);
  if (!may_be_at_once(t, longest) || op.prepare != nullptr) return false;
  const auto ranks = static_cast<std::size_t>(t.home->size());
  const bool tiny = longest * ranks <= transport::shm_window::inline_bytes;
  if (!tiny && longest > reduce_scatter_chunk(t.home->window->slot_bytes(), ranks, op.element_bytes)) return false;
  operands sources(t.home->size());
  const std::byte* const together = in.row_of(longest);
  std::byte* const result = out.row_of(longest);
  step_at_once now(t);
  if (!now.begin(tiny, longest * ranks)) return false;
  const transport::window_step& step = now.step();
  const int p = step.size();
  const int r = step.rank();
  const auto memory = [&step, tiny](int k) { return tiny ? step.short_data(k) : step.slot(k); };
  // Nobody else reads this rank's own block. Where it is short, one copy of all is the shortest.
  const std::size_t before = static_cast<std::size_t>(r) * longest;
  const std::byte* const own = together != nullptr ? together + before : nullptr;
  if (own != nullptr && longest >= shortest_apart) {
    std::memcpy(memory(r), together, before);
    std::memcpy(memory(r) + before + longest, own + longest, (ranks - 1) * longest - before);
  } else if (together != nullptr) {
    copy_short(memory(r), together, longest * ranks);
  } else {
    for (int k = 0; k < p; ++k) copy_in(in, k, 0, longest, memory(r) + static_cast<std::size_t>(k) * longest);
  }
  now.gives(longest * ranks);
  now.raise();
  if (!now.joined_in_turn() || !now.raised_by_all()) return false;
  try {
    sources.set([&](int k) { return k == r && own != nullptr ? own : memory(k) + before; });
    if (result != nullptr) {
      sources.fold(op, p, result, longest);
      conclude(op, result, longest / op.element_bytes, p);
    } else {
      sources.fold_out(op, p, out, 0, 0, longest, false);
      out.each_piece(0, 1, [&](std::byte* data, std::size_t n) { conclude(op, data, n / op.element_bytes, p); });
    }
    if (!tiny) step.hand_back_all(before, longest);
  } catch (...) {
    now.give_up(t);
    return false;
  }
  now.end();
  return true;
}

COHORT_ALIGNED COHORT_DECL bool scan_at_once(cohort::detail::ticket& t, const std::byte* in, std::byte* out,
                                             std::size_t count, const cohort::detail::reducer& op) {
  if (t.signature.algorithm != algorithm::shared_memory) return pair_at_once(t).scan(in, out, count, op);
  const std::size_t bytes = count * op.element_bytes;
  const int p = t.home->size();
  if (!may_be_at_once(t, bytes) || is_chained_scan(bytes, p)) return false;
  const bool tiny = bytes <= transport::shm_window::inline_bytes;
  if (!tiny && bytes > scan_chunk(bytes, t.home->window->slot_bytes(), p, op.element_bytes)) return false;
  operands sources(p);
  step_at_once now(t);
  if (!now.begin(tiny, bytes)) return false;
  const transport::window_step& step = now.step();
  const int r = step.rank();
  const auto memory = [&step, tiny](int k) { return tiny ? step.short_data(k) : step.slot(k); };
  try {
    give(op, in, memory(r), count, r + 1);
    now.gives(bytes);
    now.raise();
    for (int k = r - 1; k >= 0; --k) {
      if (!now.raised_by(k)) return false;
    }
    const std::byte* const own = op.prepare != nullptr ? memory(r) : in;
    sources.set([&](int k) { return k == r ? own : memory(k); });
    sources.fold(op, r + 1, out, bytes);
    conclude(op, out, count, r + 1);
    if (p == 2 && r == 1 && !tiny && op.prepare == nullptr) step.hand_back_all(0, bytes);
  } catch (...) {
    now.give_up(t);
    return false;
  }
  now.end();
  return true;
}

COHORT_ALIGNED COHORT_DECL bool broadcast_at_once(cohort::detail::ticket& t, std::byte* data, std::size_t bytes) {
  short_move m;
  m.in = m.out = data;
  m.block = bytes;
  m.giver = t.signature.root;
  if (t.signature.algorithm != algorithm::shared_memory) return pair_at_once(t).move(m);
  if (fits_beside_words(m, t.home->rank(), t.home->size())) return move_at_once(t, m);
  return move_at_once(t, broadcast_move({data, 1, bytes}, t.signature.root));
}

COHORT_DECL bool barrier_at_once(cohort::detail::ticket& t) {
  return t.signature.algorithm == algorithm::shared_memory ? move_at_once(t, window_move{}) : pair_at_once(t).barrier();
}

}  // namespace cohort::collective
