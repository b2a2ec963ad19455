// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: the turn, who takes it, and the sleep between turns.
#pragma once

#include <cohort/detail/for_scope.hpp>
#include <cohort/transport/tcp.hpp>

#include <algorithm>

namespace cohort::transport {

inline bool tcp_transport::progress() {
  constexpr int most_handlers = 16;
  note_look();
  const auto look_at_memory = [this] {
    const bool reached = waits_.look(*this);
    const bool moved = !links_.empty() && links_.move();
    // One handler takes all bells at once, and one turn not all that they were for: of the rest nothing tells again.
    if (moved && !own_io_ && links_.any_ready()) schedule_turn();
    return moved || reached;
  };
  bool moved = look_at_memory();
  bool striping = false;
  // Words in memory cost less to look at than sockets: with nothing else open the others are asked more rarely.
  const unsigned every = open_.empty() && neighbours_ ? 64 : 32;
  const bool asks_all = ++turn_ % every == 0;
  if (open_.size() <= asked_directly) {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const peer& p = peer_of(open_[i]);
      if (const stripe_set* const stripes = p.connection->stripes_if_any()) striping = striping || stripes->busy();
      // Each socket that is asked in vain costs a call of the kernel's.
      const bool reads = asks_all || wants_reading(p);
      if (!reads && !p.connection->has_output()) continue;
      const std::shared_ptr<peer_connection> c = p.connection;  // what comes may end it
      if (c->has_output()) moved = c->try_write() || moved;
      if (reads && c->open()) moved = c->try_read() || moved;
    }
  }
  if (open_.size() > asked_directly || striping || asks_all) {
    if (neighbours_ && neighbours_->has_waiting()) read_mail();
    if (io_->stopped()) io_->restart();
    // Who has not slept for some turns is not about to.
    constexpr unsigned turns_to_stay_awake = 4;
    if (asks_sockets() && ++reactor_turns_awake_ == turns_to_stay_awake) {
      for (const int r : open_) unwatch(peer_of(r));
    }
    for (std::size_t i = 0; i < open_.size(); ++i) arm_write(open_[i]);
    {
      const detail::for_scope inside(in_reactor_, true);  // a handler of the caller's may throw
      // Not until nothing is ready: a peer that sends as fast as this rank reads would hold the caller for all it has.
      for (int handlers = 0; handlers < most_handlers && io_->poll_one() > 0; ++handlers) moved = true;
    }
    if (std::exchange(look_again_, false)) moved = look_at_memory() || moved;
  }
  return moved;
}

/// Whoever looks for messages has no more to send for now: those that wait in sockets leave.
inline void tcp_transport::note_look() noexcept {
  ++times_looked_;
  if (!std::exchange(in_bursts_, false)) return;
  for (const int r : open_) peer_of(r).connection->end_burst();
}

inline void tcp_transport::sleep_until(clock::time_point until) {
  // Bounded: a wait on a caller's io_context must notice when that is stopped.
  const auto limit = std::min(until, clock::now() + std::chrono::seconds{1});
  if (io_->stopped()) io_->restart();
  watch_sockets();
  reactor_turns_awake_ = 0;
  if (!neighbours_) {
    io_->run_one_until(limit);
    return;
  }
  if (links_.read_all_overdue()) return;
  fall_asleep();
  if (!waits_.any_reached() && !links_.any_ready()) io_->run_one_until(limit);
  if (own_io_) neighbours_->wake_up();
}

inline void tcp_transport::wake() noexcept {
  try {
    detail::post_to(*io_, [this, alive = alive_] {
      // On a caller's io_context nobody polls: the handler takes the turn.
      if (*alive && !own_io_) turn_from_handler();
    });
  } catch (...) {
    // No memory for the handler: the flag is set, and the next turn sees it.
    return;
  }
}

inline void tcp_transport::turn_from_handler() {
  // A turn within a turn would move what the outer one is about to: that looks again itself.
  if (in_reactor_) {
    look_again_ = true;
    return;
  }
  // Handlers of the caller's run in the reactor too, and may let go of this transport.
  const auto keep = weak_from_this().lock();
  try {
    poll();
  } catch (...) {
    schedule_turn();  // for what this one has left
    throw;
  }
}

inline void tcp_transport::schedule_turn() {
  if (own_io_ || turn_scheduled_) return;
  turn_scheduled_ = true;
  detail::post_to(*io_, [this, alive = alive_] {
    if (!*alive) return;
    turn_scheduled_ = false;
    turn_from_handler();
  });
}

inline void tcp_transport::deadline_moved(clock::time_point t) {
  if (own_io_) return;
  deadline_timer_.expires_at(t);
  detail::when_expired(deadline_timer_, [this, alive = alive_](const boost::system::error_code& cancelled) {
    if (!*alive || cancelled) return;
    look_at_clock();  // whatever else the turn finds: this was the only sign
    turn_from_handler();
  });
}

}  // namespace cohort::transport
