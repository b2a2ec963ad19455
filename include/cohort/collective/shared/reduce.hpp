// SPDX-License-Identifier: BSL-1.0
// The all-reduce and the reduce of ranks that share memory: short vectors are read from everybody by everybody, long
// ones are combined slice by slice, each rank its own. Called by collective/all_reduce.hpp and collective/reduce.hpp.
#pragma once

#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/direct.hpp>
#include <cohort/collective/shared/lent.hpp>
#include <cohort/collective/shared/open.hpp>
#include <cohort/collective/shared/reduced.hpp>
#include <cohort/collective/shared/step_bytes.hpp>

namespace cohort::collective {

/// Vectors up to this size are combined whole by every rank: cheaper than waiting once more for slices.
[[nodiscard]] constexpr std::size_t whole_vector_bytes(int ranks) noexcept {
  return ranks <= 2 ? std::size_t{8} << 10 : std::size_t{12} << 10;
}

/// Whether one of two ranks takes the result. Then it combines all of it where it goes: slices would cross between the
/// two once more.
[[nodiscard]] constexpr bool goes_to_one_of_two(int ranks, int root) noexcept { return ranks == 2 && root >= 0; }

/// Who reads a slice that another rank has combined. Who leaves its lines modified must not find them read by that one later: it has
/// what it needs of them before. Not where a frame, going on, prepares the operand in its place again.
[[nodiscard]] inline cohort::detail::readers readers_of_slices(const cohort::detail::reducer& op,
                                                               const transport::shm_window& window, int root) noexcept {
  using cohort::detail::readers;
  if (op.prepare != nullptr || !cohort::detail::lines_are_handed_back()) return readers::many;
  return window.size() == 2 || root >= 0 ? readers::one : window.readers_of_all(false);
}

/// Whether what a rank says of its buffers may save the copies: they are long enough, and so are their elements not.
[[nodiscard]] inline bool may_offer_buffers(std::size_t bytes, const cohort::detail::reducer& op) noexcept {
  return op.element_bytes <= direct_element_bytes && bytes >= 4 * direct_end_bytes;
}

namespace detail {

/// A chunk of the vector, all but this rank's own slice, which nobody else reads.
inline void give_but_own(transport::window_use& use, const layout& source, std::size_t at, std::size_t bytes,
                         const cohort::detail::reducer& op) {
  const slices cut(bytes, use.size(), op.element_bytes);
  const std::size_t own = cut.begin(use.rank());
  const std::size_t behind = own + cut.size(use.rank());
  copy_in(source, 0, at, own, use.mine());
  copy_in(source, 0, at + behind, bytes - behind, use.mine() + behind);
}

/// The last step of a functor on what was not combined by combine_everywhere.
inline void finish_ends(const cohort::detail::reducer& op, const layout& dest, std::size_t bytes,
                        const common_range& reach, int ranks) {
  if (op.finish == nullptr) return;
  const auto apply = [&](std::byte* data, std::size_t n) { op.finish(op.op, data, data, n / op.element_bytes, ranks); };
  dest.each_piece_within(0, 0, reach.from, apply);
  dest.each_piece_within(0, reach.to, bytes - reach.to, apply);
}

}  // namespace detail

/// Every rank combines its slice of everybody's buffers where they are, and writes it to all of them.
///
/// Needs: everybody has told where its buffers lie, and `use` has waited for that
template <class Use = transport::window_use>
task<> reduce_directly(Use& use, layout source, layout dest, std::size_t bytes, detail::common_range reach,
                       const cohort::detail::reducer& op, int root) {
  const int p = use.size();
  const int r = use.rank();
  transport::regions& known = *use.transport().shared_buffers();
  transport::neighbours& here = *use.transport().host_ranks();
  reachable_buffers all(p);
  all.in(r) = detail::one_piece(source, bytes);
  all.out(r) = root < 0 || root == r ? detail::one_piece(dest, bytes) : all.in(r);
  for (int k = 1; k < p;) {
    const int from = use.other(k);
    const int there = use.current().home().world_rank(from);
    const offered_buffers theirs = detail::told_buffers(use, from);
    const std::uint32_t before = here.arrivals().load(std::memory_order_relaxed);
    all.in(from) = known.of(there, theirs.in);
    all.out(from) = known.of(there, theirs.out);
    if (all.in(from) != nullptr && all.out(from) != nullptr) {
      ++k;
      continue;
    }
    co_await use.reach(here.arrivals(), before + 1, from);
    k = 1;  // what came meanwhile may have taken away the memory of one that was there
  }
  const slices cut(reach.to - reach.from, p, op.element_bytes);
  // What is written is read next by another core, or not before much else has been.
  combine_everywhere(op, all, p, root, r, reach.from + cut.begin(r), cut.size(r), vectors_exceed_caches(bytes, p));
  for (int k = 1; k < p; ++k) co_await use.stands_by(use.other(k));
  use.raise_second();
  for (int k = 1; k < p; ++k) co_await use.second_of(use.other(k));
}

/// The long vectors of two ranks, one of which takes the result: the other fills one half of its part meanwhile.
///
/// Needs: `given`: the first `chunk` bytes have been handed over in the step under way, and have arrived
template <class Use = transport::window_use>
task<> reduce_for_one(Use& use, layout source, layout dest, std::size_t bytes, std::size_t chunk, bool given,
                      const cohort::detail::reducer& op, bool takes) {
  const int other = use.other(1);
  const bool streaming = vectors_exceed_caches(bytes, 2);
  const std::byte* const own = detail::one_piece(source, bytes);
  operands sources(2);
  for (std::size_t at = 0; at < bytes; at += chunk) {
    const std::size_t here = std::min(chunk, bytes - at);
    if (!given) {
      co_await use.left_by(other);
      if (!takes) copy_in(source, 0, at, here, use.mine());
      use.raise();
    }
    if (takes) {
      if (!given) co_await use.arrived(other);
      if (own == nullptr) copy_in(source, 0, at, here, use.mine());
      sources.set([&](int k) { return k == other ? use.slot(k) : own != nullptr ? own + at : use.mine(); });
      sources.fold_out(op, 2, dest, 0, at, here, streaming);
      use.hand_back(other, 0, here);
    }
    given = false;
    use.end_step();
  }
}

template <class Channel>
task<reduced> reduce_in_window(Channel ch, layout source, layout dest, std::size_t bytes,
                               const cohort::detail::reducer& op, int root) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  co_await use.turn();
  bool open = op.element_bytes <= use.capacity();
  if (open && !use.open()) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_return reduced::not_at_all;
  }
  const int p = use.size();
  const int r = use.rank();
  const bool takes = root < 0 || root == r;
  const bool for_one = goes_to_one_of_two(p, root);
  use.goes_round(bytes);
  if (!use.begun()) {
    if (bytes <= transport::shm_window::inline_bytes) use.stays_short();
    if (!use.may_begin()) co_await wait_to_begin(use);
    use.announce();
  }

  const std::byte* const own_data =
      bytes <= transport::shm_window::inline_bytes ? detail::one_piece(source, bytes) : nullptr;
  std::byte* const result = takes && own_data != nullptr ? detail::one_piece(dest, bytes) : nullptr;
  if (own_data != nullptr && (result != nullptr || !takes) && p <= few_ranks) {
    // The shortest way, for what is as long as a word from another core.
    if (!use.begun()) {
      std::memcpy(use.short_data(r), own_data, bytes);
      use.raise();
    }
    if (takes) {
      for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
      const std::byte* at[few_ranks];
      for (int k = 0; k < p; ++k) at[k] = k == r ? own_data : use.short_data(k);
      op.fold_many(op.op, result, at, p, bytes / op.element_bytes);
    }
    use.end_step();
    use.finish();
    co_return reduced::combined;
  }
  operands sources(p);
  if (bytes <= (for_one ? whole_for_one_bytes : whole_vector_bytes(p))) {
    const bool tiny = bytes <= transport::shm_window::inline_bytes;
    const std::byte* const own = detail::one_piece(source, bytes);
    if (!use.begun()) {
      if (own == nullptr || !for_one || !takes) copy_in(source, 0, 0, bytes, tiny ? use.short_data(r) : use.mine());
      use.raise();
    }
    if (takes) {
      for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
      // What this rank has itself it need not read where others do.
      sources.set([&use, tiny, own, r](int k) {
        return k == r && own != nullptr ? own : tiny ? use.short_data(k) : use.slot(k);
      });
      sources.fold_out(op, p, dest, 0, 0, bytes, false);
      // Who takes no result reads nothing of its own there.
      if (!tiny && root >= 0) use.hand_back_all(0, bytes);
    }
    use.end_step();
    use.finish();
    co_return reduced::combined;
  }

  // Long vectors. Who can be reached says where; if all can, nothing is copied.
  const bool streaming = vectors_exceed_caches(bytes, p);
  const std::size_t room = for_one ? std::min(use.capacity(), step_for_one(bytes, two_on_cores(c.home())))
                                   : step_of_vectors(bytes, use.capacity(), p);
  const std::size_t chunk = std::max(whole_elements(room, op.element_bytes), op.element_bytes);
  offered_buffers mine;
  bool offers = false;
  const auto take_back = [&use, &mine] { use.transport().shared_buffers()->take_back(mine.in, mine.out); };
  detail::lent_buffers buffers(use, take_back);
  if (!use.begun()) {
    if (may_offer_buffers(bytes, op)) {
      mine.in = detail::place_of_block(use, source, bytes);
      mine.out = takes ? detail::place_of_block(use, dest, bytes) : mine.in;
    }
    detail::tell_buffers(use, mine);
    offers = mine.complete(bytes);
    if (offers) {
      copy_in(source, 0, 0, direct_end_bytes, use.mine());
      copy_in(source, 0, bytes - direct_end_bytes, direct_end_bytes, use.mine() + direct_end_bytes);
    } else if (!for_one) {
      detail::give_but_own(use, source, 0, std::min(chunk, bytes), op);
    } else if (!takes) {
      copy_in(source, 0, 0, std::min(chunk, bytes), use.mine());
    }
    if (offers) buffers.lend();
    use.raise();
  }
  int offering = offers ? 1 : 0;
  detail::common_range reach{0, bytes, op.element_bytes};
  if (offers) mine.narrow(reach);
  for (int k = 1; k < p; ++k) {
    const int from = use.other(k);
    co_await use.arrived(from);
    const offered_buffers theirs = detail::told_buffers(use, from);
    if (!theirs.complete(bytes)) continue;
    ++offering;
    theirs.narrow(reach);
  }

  if (offering == p) {
    if (takes) {
      sources.set([&use](int k) { return use.slot(k); });
      sources.fold_out(op, p, dest, 0, 0, reach.from, false);
      const std::size_t at_end = direct_end_bytes - (bytes - reach.to);
      sources.set([&use, at_end](int k) { return use.slot(k) + direct_end_bytes + at_end; });
      sources.fold_out(op, p, dest, 0, reach.to, bytes - reach.to, false);
      detail::finish_ends(op, dest, bytes, reach, p);
    }
    co_await reduce_directly(use, source, dest, bytes, reach, op, root);
    buffers.are_back();
    use.end_step();
    use.finish();
    co_return reduced::finished;
  }
  // Those who offered have given nothing yet, and nobody reaches for it: everybody begins again.
  buffers.are_back();
  bool given = offering == 0;
  if (!given) use.end_step();
  if (for_one) {
    co_await reduce_for_one(use, source, dest, bytes, chunk, given, op, takes);
    use.finish();
    co_return reduced::combined;
  }

  const cohort::detail::readers who = readers_of_slices(op, use.window(), root);
  const bool own_first = who != cohort::detail::readers::many;
  for (std::size_t at = 0; at < bytes; at += chunk) {
    const std::size_t here = std::min(chunk, bytes - at);
    const slices cut(here, p, op.element_bytes);
    const std::size_t own = cut.begin(r);
    const auto take_own = [&] { copy_out(use.mine() + own, dest, 0, at + own, cut.size(r), streaming); };
    if (!given) {
      for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
      detail::give_but_own(use, source, at, here, op);
      use.raise();
      for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
    }
    given = false;
    if (!use.halfway()) {
      std::size_t done = own;
      source.each_piece_within(0, at + own, cut.size(r), [&](const std::byte* data, std::size_t n) {
        sources.set([&](int k) { return k == r ? data : use.slot(k) + done; });
        op.fold_many(op.op, use.mine() + done, sources.data(), p, n / op.element_bytes);
        done += n;
      });
      if (takes && own_first) take_own();
      use.raise_second();
      use.hand_back_all(own, cut.size(r));
    }
    if (takes) {
      if (!own_first) take_own();
      for (int k = 1; k < p; ++k) {
        const int from = use.other(k);
        co_await use.second_of(from);
        copy_out(use.slot(from) + cut.begin(from), dest, 0, at + cut.begin(from), cut.size(from), streaming, who);
      }
    }
    use.end_step();
  }
  use.finish();
  co_return reduced::combined;
}

}  // namespace cohort::collective
