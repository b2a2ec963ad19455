// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: a rank that destroys a communicator says so to the other members, behind the last message that
// it sent them there: what they wait for from it, or want to send it, does not come about any more.
#pragma once

#include <cohort/transport/tcp.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>

namespace cohort::transport {

inline void tcp_transport::retire(const group& g) noexcept {
  try {
    retirements_.note_own(g.context(), g.failure() != nullptr);
    if (left_ || g.failure()) return;
    for (const int member : g.members()) {
      if (member != rank()) tell_retired(member, g.context());
    }
  } catch (const std::exception&) {
    // Out of memory: the others are told at their deadlines.
    return;
  }
}

/// Nothing where there is no connection: over one that is made later it is the answer to what comes.
inline void tcp_transport::tell_retired(int to, std::uint64_t context) {
  peer& p = peer_of(to);
  if (p.state != link::open || p.connection->peer_has_left()) return;
  const piece what{reinterpret_cast<std::byte*>(&context), sizeof context};
  p.connection->tell({&what, 1});
  if (p.connection->has_output()) arm_write(to);
}

/// A message for a communicator that this rank has destroyed: nobody will ask for it.
///
/// Result: false: it is for another one
inline bool tcp_transport::comes_too_late(peer_connection& c, std::uint64_t context) {
  if (matcher_.nothing_early() || !retirements_.own(context)) return false;
  c.forget(context);
  matcher_.forget(context, [](const early_message&) {});
  if (!retirements_.had_failed(context)) tell_retired(c.peer(), context);
  return true;
}

inline bool tcp_transport::on_notice(peer_connection& c, std::span<const std::byte> what) {
  std::uint64_t context = 0;
  if (what.size() != sizeof context) return false;
  std::memcpy(&context, what.data(), sizeof context);
  retirements_.note(context, c.peer());
  const group* const g = find(context);
  if (g == nullptr || g->failure()) return true;
  const bool any_source = others_retired(*g) && matcher_.awaits(context, -1, true);
  if (any_source || matcher_.awaits(context, c.peer(), true) || c.awaits_grant(context, true)) {
    report_mismatch(*g, -1, c.peer(), errc::peer_lost, describe_departure(*g, c.peer(), false));
  }
  return true;
}

/// Whether the other side of a message, or each that it may be, has destroyed its part of the communicator.
inline bool tcp_transport::is_refused(const request& r) const {
  if (!r.tagged()) return false;
  return r.peer >= 0 ? retirements_.has(r.header.context, r.peer) : others_retired(r.owner->owner->home());
}

inline void tcp_transport::refuse_retired(const request& r) {
  refuse(r, r.peer, errc::peer_lost, describe_departure(r.owner->owner->home(), r.peer, false));
}

inline bool tcp_transport::others_retired(const group& g) const {
  return g.size() > 1 && std::all_of(g.members().begin(), g.members().end(), [&](int member) {
           return member == rank() || retirements_.has(g.context(), member);
         });
}

}  // namespace cohort::transport
