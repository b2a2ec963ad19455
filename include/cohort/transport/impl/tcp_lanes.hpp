// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: the connections beside the first one to a rank, which share its long messages.
#pragma once

#include <cohort/transport/tcp.hpp>
#include <cohort/transport/tcp_calls.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

namespace cohort::transport {

/// At the first long message to a rank: from then on there may be several connections to it.
inline void tcp_transport::choose_stripes(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  p.stripes = settings_.stripes;
  if (p.socket == nullptr) {
    p.stripes = 1;  // memory
  } else if (p.stripes == 0) {
    // Ranks of one host share its link, and are as many flows as that.
    const auto own = p.socket->local().address();
    const bool alone = ranks_on_machine_ <= 1 && !own.is_unspecified() && !own.is_loopback();
    p.stripes = alone ? stripes_for(link_speed_of(own)) : 1;
  }
  if (p.stripes == 1) return;
  const auto number = static_cast<std::size_t>(p.stripes);
  p.connection->use_stripes(number);
  if (p.lanes.size() < number) p.lanes.resize(number);
  for (std::size_t i = 0; i < number; ++i) {
    if (p.lanes[i].state == link::none) dial_lane(rank_of_peer, i);
  }
}

/// Hands a message to an open connection.
inline void tcp_transport::pass_on(request& send) {
  peer& p = peer_of(send.peer);
  if (p.stripes == 0 && send.header.bytes >= shortest_striped) choose_stripes(send.peer);
  p.connection->send(send);
}

inline hello_verdict tcp_transport::decide_incoming_lane(const hello& h) {
  peer& p = peer_of(h.rank);
  if (h.lane > most_stripes || p.state != link::open || p.socket == nullptr) {
    return {hello_field::lane, p.state == link::open ? most_stripes : 0, h.lane};
  }
  if (p.lanes.size() < h.lane) p.lanes.resize(h.lane);
  lane& l = p.lanes[h.lane - 1];
  const hello_verdict taken{hello_field::capacity, 1, 0};
  if (l.state == link::open || l.state == link::lost) return taken;
  // As for the first connection.
  if (l.state == link::dialing && rank() < h.rank) return taken;
  if (l.dialing) l.dialing->cancel();
  l.dialing.reset();
  l.state = link::promised;
  return {};
}

inline void tcp_transport::dial_lane(int rank_of_peer, std::size_t index) {
  peer& p = peer_of(rank_of_peer);
  p.lanes[index].state = link::dialing;
  hello mine = greeting_for(rank_of_peer);
  mine.lane = static_cast<std::uint32_t>(index + 1);
  const auto introduction =
      std::make_shared<tcp_introduction>(socket_towards(p.address.where), mine, settings_.secret, settings_.tls);
  p.lanes[index].dialing = introduction;
  introduction->start(
      p.address.where, [this, alive = alive_, rank_of_peer, index](tcp_link wire, const tcp_introduction::outcome& o) {
        if (!*alive) return;
        const peer& q = peer_of(rank_of_peer);
        lane& l = peer_of(rank_of_peer).lanes[index];
        if (l.state != link::dialing) return;
        l.dialing.reset();
        if (!o.why && o.verdict.accepted() && o.genuine) return adopt_lane(rank_of_peer, index, std::move(wire));
        if (!o.why && o.verdict.field == hello_field::capacity) {
          // Its own connection to this rank is on the way.
          l.state = link::promised;
          return;
        }
        l.state = link::lost;
        if (q.state != link::open || q.left || q.connection->peer_has_left()) return;
        const std::string text = "rank " + std::to_string(rank()) + " cannot open stripe " + std::to_string(index + 1) +
                                 " of " + std::to_string(q.stripes) + " of its connection to " +
                                 describe_peer(rank_of_peer) + ": " + reason_of(o);
        suspect(rank_of_peer, text);
      });
}

inline void tcp_transport::adopt_lane(int rank_of_peer, std::size_t index, tcp_link wire) {
  peer& p = peer_of(rank_of_peer);
  if (p.state != link::open || index >= p.lanes.size() || p.lanes[index].state == link::open) return wire.close();
  prepare(wire.socket());
  // What the kernel cannot send yet another stream may: without this the first one that is asked takes megabytes.
  constexpr int most_unsent = static_cast<int>(longest_chunk);
  ::setsockopt(wire.socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most_unsent, sizeof most_unsent);
  lane& l = p.lanes[index];
  l.state = link::open;
  auto stream =
      stream_over(std::move(wire), l.socket, [this, rank_of_peer, index] { read_lane_again(rank_of_peer, index); });
  stripe_set& stripes = p.connection->stripes();
  stripes.open(index, std::move(stream));
  if (left_) stripes.say_goodbye();
  // What came right behind the greeting may have been read with it.
  if (settings_.tls != nullptr) read_lane_again(rank_of_peer, index);
  arm_lane_read(rank_of_peer, index);
  arm_lanes(rank_of_peer);
}

/// What its chunk leads to may need any of its connections.
inline void tcp_transport::read_lane(const std::shared_ptr<peer_connection>& c, std::size_t index) {
  c->stripes().try_read(index);
  if (c->open()) arm_write(c->peer());
}

inline void tcp_transport::read_lane_again(int rank_of_peer, std::size_t index) {
  peer& p = peer_of(rank_of_peer);
  if (std::exchange(p.lanes[index].reads_again, true)) return;
  detail::post_to(*io_, [this, alive = alive_, c = p.connection, index] {
    if (!*alive || !c->open()) return;
    peer_of(c->peer()).lanes[index].reads_again = false;
    read_lane(c, index);
  });
}

inline void tcp_transport::arm_lane_read(int rank_of_peer, std::size_t index) {
  peer& p = peer_of(rank_of_peer);
  lane& l = p.lanes[index];
  if (l.read_armed || p.state != link::open || !p.connection->stripes().is_open(index)) return;
  l.read_armed = true;
  l.socket->when_ready(tcp::socket::wait_read,
                       [this, alive = alive_, c = p.connection, index](const boost::system::error_code&) {
                         if (!*alive || !c->open()) return;
                         peer_of(c->peer()).lanes[index].read_armed = false;
                         read_lane(c, index);
                         arm_lane_read(c->peer(), index);
                       });
}

/// Waits for room in the streams that have something to send.
inline void tcp_transport::arm_lanes(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  for (std::size_t i = 0; i < p.lanes.size() && p.state == link::open; ++i) {
    lane& l = p.lanes[i];
    if (l.write_armed || l.state != link::open || !p.connection->stripes().has_output(i)) continue;
    l.write_armed = true;
    l.socket->when_ready(tcp::socket::wait_write,
                         [this, alive = alive_, c = p.connection, i](const boost::system::error_code&) {
                           if (!*alive || !c->open()) return;
                           peer_of(c->peer()).lanes[i].write_armed = false;
                           c->stripes().try_write(i);
                           arm_lanes(c->peer());
                         });
  }
}

/// What is left of the connection stays open until this rank leaves: if it closed, the peer would find that and might
/// be heard first, with less to tell.
inline void tcp_transport::on_stripe_lost(peer_connection& c, const boost::system::error_code& why, const char* what) {
  peer& p = peer_of(c.peer());
  if (p.state == link::lost) return;
  p.state = link::lost;
  open_.erase(std::remove(open_.begin(), open_.end(), c.peer()), open_.end());
  drop_lanes(p);
  if (p.left || c.peer_has_left()) return check_departed(c.peer());
  suspect(c.peer(), loss_text(c.peer(), why, what));
}

/// Nobody answers on them any more.
inline void tcp_transport::drop_lanes(peer& p) {
  for (lane& l : p.lanes) {
    if (l.dialing) l.dialing->cancel();
    l.dialing.reset();
    l.state = link::lost;
  }
}

}  // namespace cohort::transport
