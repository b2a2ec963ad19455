// SPDX-License-Identifier: BSL-1.0
// What becomes of a message that comes over a connection: into the buffer of its receive, or kept until that is posted.
// Between arrival.hpp and peer_connection.hpp; used by the transports that own connections.
#pragma once

#include <cohort/transport/arrival.hpp>
#include <cohort/transport/peer_connection.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

namespace cohort::transport {

/// Its header is here: says where its bytes go.
inline void take_message(engine& e, matcher& posted, peer_connection& c, const envelope& header) {
  if (request* const receive = match_arrival(e, posted, header); receive != nullptr) {
    receive->place = &c;
    c.land_in(*receive);
    return;
  }
  // Nobody will ask for it any more: its bytes are read and forgotten.
  if (const group* const g = e.find(header.context); g != nullptr && g->failure()) return;
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->origin = &c;
  early->along = static_cast<std::size_t>(header.bytes);
  early->payload = e.scratch().take(early->along);
  c.land_in(keep_early(e, posted, std::move(early)));
}

/// It waits at its sender to be asked for, but for the bytes that come along.
inline void take_announced(engine& e, matcher& posted, peer_connection& c, const envelope& header,
                           std::uint64_t ticket) {
  const std::size_t along = c.comes_along(ticket);
  if (request* const receive = match_arrival(e, posted, header); receive != nullptr) {
    if (along > 0) c.land_in(*receive);
    return c.grant(*receive, ticket);
  }
  if (const group* const g = e.find(header.context); g != nullptr && g->failure()) return;
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->origin = &c;
  early->ticket = ticket;
  early->along = along;
  if (along > 0) early->payload = e.scratch().take(along);
  early_message& kept = keep_early(e, posted, std::move(early));
  if (along > 0) c.land_in(kept);
}

/// The bytes of an early message have been used: their space belongs to the sender again.
inline void use_up(engine& e, early_message& early) {
  auto* const from = static_cast<peer_connection*>(early.origin);
  if (from != nullptr && from->open()) from->return_credit(early.arrived);
  e.scratch().give_back(std::move(early.payload));
}

/// Gives a receive a message that came before it.
///
/// Needs: the two agree; `early->origin` is a connection, or null and all of it is here
inline void take_early(engine& e, request& receive, std::unique_ptr<early_message> early) {
  peer_connection* const from = static_cast<peer_connection*>(early->origin);
  const std::uint64_t ticket = early->ticket;
  const bool still_comes = early->arrived < early->along;
  receive.header = early->header;
  if (still_comes) {
    from->claim(*early, receive);
    e.scratch().give_back(std::move(early->payload));
  } else if (ticket == 0 || early->along > 0) {
    scatter_into(receive, 0, early->payload.data(), early->arrived);
    use_up(e, *early);
  }
  if (ticket != 0) return from->grant(receive, ticket);
  if (!still_comes) e.complete(receive);
}

/// The same without a request, if the message is what is expected, has room, and is here with all its bytes.
///
/// Result: false: nothing was taken
[[nodiscard]] inline bool take_early_now(engine& e, matcher& all, int source, const envelope& expected,
                                         const piece& into, std::uint64_t& came) {
  const std::unique_ptr<early_message> early = all.take_whole(expected, source, into.bytes);
  if (early == nullptr) return false;
  came = early->header.bytes;
  if (early->arrived > 0) std::memcpy(into.data, early->payload.data(), early->arrived);
  use_up(e, *early);
  return true;
}

/// Nobody has asked for it, and nobody will: its space belongs to the sender again, once all that comes of it is here.
inline void drop_early(const early_message& m) {
  auto* const from = static_cast<peer_connection*>(m.origin);
  if (from == nullptr || !from->open()) return;
  if (m.arrived < m.along) return from->forget(m);
  if (m.ticket == 0 || m.along > 0) from->return_credit(m.arrived);
}

}  // namespace cohort::transport
