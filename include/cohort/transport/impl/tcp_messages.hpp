// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: what becomes of a send, of a receive, and of a message that arrives.
#pragma once

#include <cohort/transport/tcp.hpp>

namespace cohort::transport {

inline void tcp_transport::start(request& r) {
  if (r.sending) {
    start_send(r);
  } else if (r.probing) {
    start_probe(r);
  } else {
    start_receive(r);
  }
}

inline void tcp_transport::refuse(const request& r, int culprit, errc code, std::string text) {
  transport::refuse(*this, r, culprit, code, std::move(text));
}

inline void tcp_transport::start_send(request& send) {
  if (send.peer == rank()) return start_local(send);
  if (is_refused(send)) return refuse_retired(send);
  peer& p = peer_of(send.peer);
  if (p.state == link::none && neighbours_ && neighbours_->shares(rank(), send.peer)) link_up(send.peer);
  if (p.state == link::open && !p.connection->peer_has_left()) {
    const bool takes_long = send.header.bytes >= long_copy && p.memory == nullptr;
    pass_on(send);
    if (p.connection->has_output()) arm_write(send.peer);
    if (takes_long && how_to_wait().crowded()) read_awaited();
    return;
  }
  p.waiting.push_back(send);
  send.place = &p;
  if (is_gone(send.peer)) return check_departed(send.peer);
  if (p.state == link::none) dial(send.peer);
  if (p.state == link::lost) suspect(send.peer, "the connection to rank " + std::to_string(send.peer) + " is lost");
}

/// Between two long sends: what the others send is read while it is in the caches, and they can go on.
inline void tcp_transport::read_awaited() {
  if (open_.size() > asked_directly) return;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    const peer& p = peer_of(open_[i]);
    if (!wants_reading(p)) continue;
    const std::shared_ptr<peer_connection> c = p.connection;  // what comes may end it
    (void)c->try_read();
  }
}

inline bool tcp_transport::send_now(int to, const envelope& header, const piece& payload) {
  if (to == rank() || (header.tagged && retirements_.has(header.context, to))) return false;
  peer& p = peer_of(to);
  if (p.state != link::open || p.connection->peer_has_left()) return false;
  if (p.memory != nullptr && p.connection->write_in_place(*p.memory, header, payload)) return true;
  return send_by_stream(to, header, payload);
}

[[gnu::noinline]] inline bool tcp_transport::send_by_stream(int to, const envelope& header, const piece& payload) {
  peer_connection& c = *peer_of(to).connection;
  if (!c.send_now(header, payload)) return false;
  if (c.has_output()) arm_write(to);
  return true;
}

inline bool tcp_transport::receive_now(int from, const envelope& expected, const piece& into, std::uint64_t& came) {
  if (from == rank()) return false;
  peer& p = peer_of(from);
  if (p.state != link::open) return false;
  if (!matcher_.nothing_early()) return take_early_now(*this, matcher_, from, expected, into, came);
  if (p.memory == nullptr) return receive_from_socket(p, expected, into, came);
  if (!how_to_wait().looks_briefly() || !matcher_.idle(expected.context) || !p.connection->between_frames())
    return false;
  return receive_soon(*p.memory, *p.connection, how_to_wait(), expected, into, came);
}

/// To look for an answer here saves what a message costs that somebody waits for.
inline bool tcp_transport::receive_from_socket(peer& p, const envelope& expected, const piece& into,
                                               std::uint64_t& came) {
  constexpr int looks = 40;  // about what a short message and its answer take on one host
  constexpr std::size_t longest = std::size_t{64} << 10;
  if (!asks_sockets() || how_to_wait().crowded()) return false;
  if (into.bytes > longest || !matcher_.idle(expected.context) || !p.answers.expected()) return false;
  auto there = peer_connection::first_message::none;
  note_look();
  const int most = looks + static_cast<int>(into.bytes >> 9);
  for (int i = 0; i < most && there == peer_connection::first_message::none; ++i) {
    there = p.connection->receive_first(expected, into, came);
  }
  // Who is answered so soon does not sleep. What came behind it may have ended the connection, which stays until there is
  // another.
  if (there == peer_connection::first_message::taken && p.connection->open() && p.socket->watched()) {
    unwatch(p);
  }
  if (there != peer_connection::first_message::another) p.answers.came(there == peer_connection::first_message::taken);
  return there == peer_connection::first_message::taken;
}

inline void tcp_transport::start_local(request& send) {
  if (request* const receive = matcher_.take_posted(send.header); receive != nullptr) {
    if (auto wrong = accept_delivery(receive->owner->owner->home(), send.header, *receive)) {
      matcher_.post(*receive);
      return refuse(send, rank(), wrong->code, std::move(wrong->text));
    }
    copy_message(send, *receive);
    complete(*receive);
    complete(send);
    return;
  }
  auto early = std::make_unique<early_message>();
  early->header = send.header;
  if (send.header.bytes > local_eager_limit) {
    early->sender = &send;
    send.place = &matcher_;
    keep_early(*this, matcher_, std::move(early));
    return;
  }
  early->payload = scratch().take(static_cast<std::size_t>(send.header.bytes));
  early->arrived = static_cast<std::size_t>(send.header.bytes);
  gather_from(send, early->payload.data());
  keep_early(*this, matcher_, std::move(early));
  complete(send);
}

inline void tcp_transport::start_probe(request& probe) {
  if (const early_message* const m = matcher_.find_early(probe); m != nullptr) {
    probe.header = m->header;
    return complete(probe);
  }
  if (probe.immediate) {
    look_for(probe.peer);  // whoever asks now may ask again
    probe.header.source = -1;
    return complete(probe);
  }
  start_posted(probe);
}

// Waits for a message, if somebody is left who can send it.
inline void tcp_transport::start_posted(request& receive) {
  if (is_refused(receive)) return refuse_retired(receive);
  matcher_.post(receive);
  look_for(receive.peer);
  if (receive.peer < 0 || receive.peer == rank()) return;
  if (is_gone(receive.peer)) return check_departed(receive.peer);
  if (peer_of(receive.peer).state == link::lost) {
    suspect(receive.peer, "the connection to rank " + std::to_string(receive.peer) + " is lost");
  }
}

/// Each turn asks the socket of this rank from now on, or of any; the others are asked now and then.
inline void tcp_transport::look_for(int from) {
  if (from == rank()) return;
  if (from >= 0) {
    peer_of(from).awaited = true;
  } else if (open_.size() <= asked_directly) {
    for (const int r : open_) peer_of(r).awaited = true;
  }
}

/// A message. Each turn goes on asking if another receive of that communicator may wait for this rank.
inline void tcp_transport::has_come(int from, std::uint64_t context) {
  peer& p = peer_of(from);
  if (p.memory == nullptr) p.awaited = matcher_.may_await(context, from);
}

inline void tcp_transport::start_receive(request& receive) {
  std::unique_ptr<early_message> early = matcher_.take_early(receive);
  if (early == nullptr) return start_posted(receive);
  if (auto wrong = accept_delivery(receive.owner->owner->home(), early->header, receive)) {
    drop_early(*early);
    return refuse(receive, early->header.source, wrong->code, std::move(wrong->text));
  }
  if (request* const send = early->sender; send != nullptr) {
    copy_message(*send, receive);
    send->place = nullptr;
    complete(*send);
    complete(receive);
    return;
  }
  const int from = early->origin != nullptr ? early->header.source : rank();
  take_early(*this, receive, std::move(early));
  if (from != rank()) arm_write(from);
}

inline void tcp_transport::withdraw(request& r) {
  if (r.place == nullptr) return;
  if (r.place == &matcher_) {
    if (r.sending) {
      matcher_.discard_sender(r);
    } else {
      matcher_.withdraw(r);
    }
  } else if (r.peer >= 0 && r.place == &peer_of(r.peer)) {
    peer_of(r.peer).waiting.remove(r);
  } else {
    static_cast<peer_connection*>(r.place)->withdraw(r);
  }
  r.place = nullptr;
}

inline void tcp_transport::entered(const call& c) { static_cast<void>(contradicts_early(*this, matcher_, c)); }

inline void tcp_transport::on_message(peer_connection& c, const envelope& header) {
  const int from = c.peer();
  const std::uint64_t context = header.context;
  take_message(*this, matcher_, c, header);
  if (!comes_too_late(c, context)) has_come(from, context);
}

inline void tcp_transport::on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) {
  const std::uint64_t context = header.context;
  take_announced(*this, matcher_, c, header, ticket);
  if (!comes_too_late(c, context)) has_come(c.peer(), context);
  arm_write(c.peer());
}

inline void tcp_transport::on_received(peer_connection& c, request& r) {
  if (r.header.bytes >= long_copy && peer_of(c.peer()).memory == nullptr) how_to_wait().moved_long_message();
  complete(r);
}

}  // namespace cohort::transport
