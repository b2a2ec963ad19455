// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: short messages that are sent and received where they are asked for, without a request: in
// memory, and by MPI.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <exception>

namespace cohort::transport {

COHORT_DECL bool mpi_endpoint::send_now(int to, const envelope& header, const piece& payload) {
  if (broken_ || has_retired(header.context, to)) return false;
  if (!shares_memory_with(to)) return send_by_mpi(to, header, payload);
  peer_connection& c = *link_to(to);
  if (!c.open()) return false;
  return c.write_in_place(*links_.to(to).memory, header, payload) || c.send_now(header, payload);
}

COHORT_DECL bool mpi_endpoint::receive_now(int from, const envelope& expected, const piece& into, std::uint64_t& came) {
  if (!shares_memory_with(from)) return receive_by_mpi(from, expected, into, came);
  if (!matcher_.nothing_early()) return take_early_now(*this, matcher_, from, expected, into, came);
  const shm_links::link& l = links_.to(from);
  if (l.memory == nullptr || !l.connection->between_frames() || !how_to_wait().looks_briefly()) return false;
  if (!matcher_.idle(expected.context)) return false;
  return receive_soon(*l.memory, *l.connection, how_to_wait(), expected, into, came);
}

/// Whether MPI has nothing of this rank's that a turn of the engine has to see to.
COHORT_DECL bool mpi_endpoint::is_quiet() const noexcept {
  return !broken_ && issued_.empty() && transfers_.empty() && held_.empty() && device_memory_.empty();
}

COHORT_DECL bool mpi_endpoint::send_by_mpi(int to, const envelope& header, const piece& payload) {
  // Who only sends hears now and then what others have to say.
  constexpr unsigned sends_a_turn = 64;
  std::int64_t& credit = credit_[static_cast<std::size_t>(to)];
  if (payload.bytes > longest_at_once || credit < cost_of(payload.bytes) || !is_quiet()) return false;
  if (outgoing_.size() >= most_at_once || ++starts_ % sends_a_turn == 0) return false;
  try {
    outgoing_.push_back(send_copy(to, mpi_packet::of(mpi_packet::kind::eager, header), &payload, 1));
    credit -= cost_of(payload.bytes);
    return true;
  } catch (const std::exception& e) {
    mpi_failed(e.what());
    return false;
  }
}

/// MPI has copied what is so short, and mostly sent it.
COHORT_DECL void mpi_endpoint::push_out() {
  try {
    for (std::size_t i = 0; i < brief_tests_ && !outgoing_.empty(); ++i) (void)settle_outgoing();
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

/// Hands over the next message if it is here. What this rank sent is asked about by the same question, as MPI moves
/// everything whatever it is asked about, which is what takes the time.
template <class Taken>
COHORT_DECL bool mpi_endpoint::take_one_or_sent(Taken taken) {
  if (outgoing_.empty() || listening_count_ == 0) return take_one(taken);
  const std::size_t slot = listening_[next_listening_];
  // Filled as far as they are used: this is asked again and again.
  std::array<MPI_Request, 1 + most_at_once> asked;
  std::array<MPI_Status, 1 + most_at_once> statuses;
  std::array<int, 1 + most_at_once> ended;
  const std::size_t sends = std::min(outgoing_.size(), most_at_once);
  asked[0] = arriving_[slot];
  for (std::size_t i = 0; i < sends; ++i) asked[1 + i] = outgoing_[i].sent;
  int count = 0;
  detail::check_mpi(MPI_Testsome(static_cast<int>(1 + sends), asked.data(), &count, ended.data(), statuses.data()),
                    "MPI_Testsome");
  arriving_[slot] = asked[0];
  for (std::size_t i = 0; i < sends; ++i) outgoing_[i].sent = asked[1 + i];
  while (!outgoing_.empty() && outgoing_.front().sent == MPI_REQUEST_NULL) forget_oldest_outgoing();
  for (int i = 0; i < count; ++i) {
    if (ended[static_cast<std::size_t>(i)] == 0) {
      take_from(slot, statuses[static_cast<std::size_t>(i)], taken);
      return true;
    }
  }
  return false;
}

COHORT_DECL bool mpi_endpoint::receive_by_mpi(int from, const envelope& expected, const piece& into,
                                              std::uint64_t& came) {
  // One that is on its way may come in a moment, if its sender has a core of its own.
  prompt_answers& answers = answers_[static_cast<std::size_t>(from)];
  if (brief_tests_ == 1 || into.bytes > longest_at_once || !is_quiet() || !matcher_.idle(expected.context))
    return false;
  if (!answers.expected()) return false;
  bool any = false;
  bool taken = false;
  const auto take = [&](int source, const std::byte* data, std::size_t bytes) {
    any = true;
    mpi_packet p;
    if (bytes >= sizeof p) std::memcpy(&p, data, sizeof p);
    const envelope header = p.header(source);
    taken = source == from && static_cast<mpi_packet::kind>(p.what) == mpi_packet::kind::eager &&
            p.bytes == bytes - sizeof p && may_take(header, expected, into.bytes);
    if (!taken) return handle(source, data, bytes);
    came = header.bytes;
    if (p.bytes > 0) std::memcpy(into.data, data + sizeof p, p.bytes);
    return_credit(source, p.bytes);
  };
  try {
    listen_again();
    for (std::size_t i = 0; i < brief_tests_ && !any; ++i) (void)take_one_or_sent(take);
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
  if (taken || !any) answers.came(taken);
  return taken;
}

}  // namespace cohort::transport
