// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/pair_at_once.hpp.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/body.hpp>
#include <cohort/collective/pair_at_once.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <cstddef>
#include <cstring>
#include <exception>

namespace cohort::collective {

COHORT_DECL bool pair_at_once::possible(std::size_t bytes, std::size_t most) const {
  const cohort::detail::ticket& t = *call_;
  if (t.home->size() != 2 || bytes > most || !is_one_message(t.signature.kind, t.signature.algorithm)) return false;
  // An operation under way may have messages to send before this one's, one that came early may contradict it. A
  // frame fails as its communicator has.
  return !t.chosen.stop.stop_possible() && !t.home->busy() && !t.home->engine().hears_of_failure(*t.home) &&
         static_cast<transport::sharing_engine&>(t.home->engine()).nothing_against(*t.home, t.sequence, t.signature);
}

COHORT_DECL transport::envelope pair_at_once::header(std::size_t bytes) const noexcept {
  return transport::header_of(*call_->home, call_->sequence, call_->signature, bytes);
}

template <class Body>
bool pair_at_once::attempt(const Body& body) {
  group& g = *call_->home;
  g.note_entered(call_->sequence, call_->signature);
  try {
    if (!body()) return false;
    // Who takes something has moved on what it gave by then.
    if (!took_ && call_->begun.sent) static_cast<transport::sharing_engine&>(g.engine()).push_out();
  } catch (...) {
    call_->begun.failure = std::current_exception();
    return false;
  }
  g.note_completed(call_->sequence);
  return true;
}

COHORT_DECL bool pair_at_once::give(const std::byte* data, std::size_t bytes) {
  auto& transport = static_cast<transport::sharing_engine&>(call_->home->engine());
  call_->begun.sent =
      transport.send_now(call_->home->world_rank(other()), header(bytes), transport::piece{bytes_of(data), bytes});
  return call_->begun.sent;
}

COHORT_DECL bool pair_at_once::take(std::byte* data, std::size_t bytes) {
  auto& transport = static_cast<transport::sharing_engine&>(call_->home->engine());
  std::uint64_t came = 0;
  took_ = true;
  return transport.receive_now(call_->home->world_rank(other()), header(bytes), {data, bytes}, came);
}

COHORT_DECL bool pair_at_once::take_and_combine(const std::byte* in, std::byte* out, std::size_t count,
                                                const cohort::detail::reducer& op) {
  // What is tiny leaves the stack where it was: its lines are in the cache.
  constexpr std::size_t tiny = 256;
  return count * op.element_bytes <= tiny ? combine_within<tiny>(in, out, count, op)
                                          : combine_within<longest>(in, out, count, op);
}

template <std::size_t Room>
bool pair_at_once::combine_within(const std::byte* in, std::byte* out, std::size_t count,
                                  const cohort::detail::reducer& op) {
  alignas(64) std::byte arrived[Room];
  const std::size_t bytes = count * op.element_bytes;
  if (!take(arrived, bytes)) return false;
  contribute(op, in, out, count, 2);
  op.fold(op.op, out, arrived, count, other() == 0 ? side::left : side::right);
  conclude(op, out, count, 2);
  return true;
}

[[gnu::noinline]] COHORT_DECL bool pair_at_once::barrier() {
  return possible(0) && attempt([&] { return give(nullptr, 0) && take(nullptr, 0); });
}

[[gnu::noinline]] COHORT_DECL bool pair_at_once::move(const short_move& m) {
  const int r = call_->home->rank();
  const bool gives = m.gives(r);
  const bool takes = m.takes(r);
  if (m.block == 0 || !m.has_buffers(r) || !possible(m.block, longest_moved)) return false;
  const auto at = [&m](bool by_rank, int rank) { return by_rank ? m.block * static_cast<std::size_t>(rank) : 0; };
  return attempt([&] {
    if (gives && m.taker != r && !give(m.in + at(m.in_by_rank, other()), m.block)) return false;
    if (takes && m.giver != r && !take(m.out + at(m.out_by_rank, other()), m.block)) return false;
    if (gives && takes) {
      const std::byte* const from = m.in + at(m.in_by_rank, r);
      std::byte* const to = m.out + at(m.out_by_rank, r);
      if (to != from) std::memcpy(to, from, m.block);
    }
    return true;
  });
}

[[gnu::noinline]] COHORT_DECL bool pair_at_once::reduce(const std::byte* in, std::byte* out, std::size_t count,
                                                        const cohort::detail::reducer& op, int root) {
  const int r = call_->home->rank();
  const std::size_t bytes = count * op.element_bytes;
  if (op.prepare != nullptr || !possible(bytes)) return false;
  return attempt([&] {
    if (root != r && !give(in, bytes)) return false;
    return (root >= 0 && root != r) || take_and_combine(in, out, count, op);
  });
}

[[gnu::noinline]] COHORT_DECL bool pair_at_once::scan(const std::byte* in, std::byte* out, std::size_t count,
                                                      const cohort::detail::reducer& op) {
  const std::size_t bytes = count * op.element_bytes;
  if (op.prepare != nullptr || !possible(bytes)) return false;
  return attempt([&] {
    if (call_->home->rank() == 1) return take_and_combine(in, out, count, op);
    if (!give(in, bytes)) return false;
    contribute(op, in, out, count, 1);
    conclude(op, out, count, 1);
    return true;
  });
}

[[gnu::noinline]] COHORT_DECL bool pair_at_once::reduce_scatter(const layout& in, const layout& out, std::size_t bytes,
                                                                const cohort::detail::reducer& op) {
  const std::byte* const all = in.row_of(bytes);
  std::byte* const result = out.row_of(bytes);
  if (op.prepare != nullptr || all == nullptr || result == nullptr || !possible(bytes)) return false;
  const auto block = [&](int rank) { return all + bytes * static_cast<std::size_t>(rank); };
  return attempt([&] {
    return give(block(other()), bytes) &&
           take_and_combine(block(call_->home->rank()), result, bytes / op.element_bytes, op);
  });
}

}  // namespace cohort::collective
