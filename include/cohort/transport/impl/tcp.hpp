// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: joining, connecting on demand, and who is gone. tcp_messages.hpp has the messages,
// tcp_turn.hpp the turn.
#pragma once

#include <cohort/transport/tcp.hpp>
#include <cohort/transport/tcp_calls.hpp>

namespace cohort::transport {

inline tcp_transport::tcp_transport(tcp_settings s, boost::asio::io_context* io)
    : cpu_transport(s.rank, s.size),
      settings_(std::move(s)),
      own_io_(io == nullptr ? std::make_unique<boost::asio::io_context>(1) : nullptr),
      io_(io == nullptr ? own_io_.get() : io),
      congestion_(settings_.congestion_control),
      acceptor_(*io_),
      deadline_timer_(*io_),
      room_timer_(*io_) {
  if (own_io_) work_.emplace(own_io_->get_executor());
  take_turns_in(io);
  tcp_monitor::settings m;
  m.rank = settings_.rank;
  m.size = settings_.size;
  m.peer_timeout = settings_.peer_timeout;
  m.secret = settings_.secret;
  m.tls = settings_.tls;
  m.introduction.role = connection_role::control;
  m.introduction.job = job_id(settings_.run_id);
  m.introduction.epoch = settings_.epoch;
  m.introduction.world_size = settings_.size;
  m.introduction.rank = settings_.rank;
  m.introduction.target = 0;
  tcp_monitor::listener l;
  l.on_verdict = [this](std::shared_ptr<const fault> f) {
    {
      const std::lock_guard lock(mutex_);
      faults_.push_back(std::move(f));
    }
    request_attention();
  };
  l.on_departed = [this](int r) {
    {
      const std::lock_guard lock(mutex_);
      departed_.push_back(r);
    }
    request_attention();
  };
  l.on_dismissed = [this] { request_attention(); };
  monitor_ = std::make_unique<tcp_monitor>(std::move(m), std::move(l));
}

inline tcp_transport::~tcp_transport() {
  silence();
  // What this rank sent last must not be cut off by its going: the others have a moment to take it.
  constexpr auto farewell = std::chrono::seconds{1};
  if (joined_ && !lost_world_) wait_until_all_left(clock::now() + farewell);
  tcp_transport::leave();
  *alive_ = false;
  monitor_.reset();
  if (door_) door_->close();
  for (peer& p : peers_) {
    if (p.dialing) p.dialing->cancel();
    drop_lanes(p);
    if (p.connection) p.connection->close();
  }
}

inline unsigned short tcp_transport::listen() {
  const unsigned short port = listen_on(acceptor_, tcp::endpoint(settings_.bind_address, 0));
  congestion_.before_accepting(acceptor_);
  return port;
}

inline void tcp_transport::join(std::vector<tcp_peer_address> peers, const tcp::endpoint& monitor,
                                clock::time_point deadline) {
  peers_.resize(peers.size());
  for (std::size_t r = 0; r < peers.size(); ++r) {
    peers_[r].address = std::move(peers[r]);
    monitor_->describe(static_cast<int>(r), peers_[r].address.host, peers_[r].address.pid);
  }
  open_door();
  monitor_->join(monitor, deadline);
  joined_ = true;
}

inline bool tcp_transport::wait_until_all_left(clock::time_point deadline) {
  if (forked()) return true;  // it is the parent that leaves
  leave();
  if (!joined_) return true;
  // The others may still open connections to this rank, or fill the window of one.
  while (!monitor_->dismissed() && clock::now() < deadline) {
    if (own_io_) {
      if (!poll()) sleep_until(std::min(deadline, clock::now() + std::chrono::milliseconds{50}));
    } else {
      monitor_->wait_until_all_left(deadline);
    }
  }
  return monitor_->dismissed();
}

inline void tcp_transport::leave() {
  if (std::exchange(left_, true)) return;
  if (neighbours_ && joined_) read_mail();
  std::vector<int> connected = open_;
  connected.insert(connected.end(), links_.ranks().begin(), links_.ranks().end());
  for (const int r : connected) {
    peer_of(r).connection->say_goodbye();
    arm_write(r);
  }
  // What was written in memory must be there before the others hear that this rank has left.
  constexpr auto patience = std::chrono::seconds{1};
  if (neighbours_ && joined_ && !lost_world_) links_.push_out(*neighbours_, patience, [this] { read_mail(); });
  if (joined_) monitor_->goodbye();
}

// --- connections -------------------------------------------------------------------------------------------

inline void tcp_transport::open_door() {
  hello_expectation mine;
  mine.role = connection_role::data;
  mine.job = job_id(settings_.run_id);
  mine.epoch = settings_.epoch;
  mine.world_size = size();
  mine.rank = rank();
  door_ = std::make_shared<tcp_doorway>(std::move(acceptor_), mine, settings_.secret, static_cast<std::size_t>(size()),
                                        settings_.tls);
  door_->open([this](const hello& h) { return decide_incoming(h); },
              [this](tcp_link wire, const hello& h) {
                congestion_.after_accepting(wire.socket());
                if (h.lane == 0) return adopt(h.rank, std::move(wire));
                adopt_lane(h.rank, h.lane - 1, std::move(wire));
              });
}

inline hello_verdict tcp_transport::decide_incoming(const hello& h) {
  if (h.rank < 0 || h.rank == rank()) return {hello_field::rank, size() - 1, h.rank};
  if (h.lane != 0) return decide_incoming_lane(h);
  peer& p = peer_of(h.rank);
  const hello_verdict taken{hello_field::capacity, 1, 0};
  if (p.state == link::open || p.state == link::lost) return taken;
  // Both dial at once: the connection of the lower rank is the one that stays.
  if (p.state == link::dialing && rank() < h.rank) return taken;
  if (p.dialing) p.dialing->cancel();
  p.dialing.reset();
  p.state = link::promised;
  return {};
}

inline hello tcp_transport::greeting_for(int rank_of_peer) const {
  hello mine;
  mine.role = connection_role::data;
  mine.job = job_id(settings_.run_id);
  mine.epoch = settings_.epoch;
  mine.world_size = size();
  mine.rank = rank();
  mine.target = rank_of_peer;
  return mine;
}

inline std::string tcp_transport::describe_peer(int rank_of_peer) const {
  const tcp_peer_address& a = peers_[static_cast<std::size_t>(rank_of_peer)].address;
  return place_of({rank_of_peer, false, a.host, a.pid, {}}) + " at " + a.where.address().to_string() + ":" +
         std::to_string(a.where.port());
}

inline void tcp_transport::dial(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  p.state = link::dialing;
  p.dialing = std::make_shared<tcp_introduction>(socket_towards(p.address.where), greeting_for(rank_of_peer),
                                                 settings_.secret, settings_.tls);
  p.dialing->start(p.address.where,
                   [this, alive = alive_, rank_of_peer](tcp_link wire, const tcp_introduction::outcome& o) {
                     if (!*alive) return;
                     peer& q = peer_of(rank_of_peer);
                     if (q.state != link::dialing) return;
                     q.dialing.reset();
                     if (!o.why && o.verdict.accepted() && o.genuine) return adopt(rank_of_peer, std::move(wire));
                     if (!o.why && o.verdict.field == hello_field::capacity) {
                       // Its own connection to this rank is on the way.
                       q.state = link::promised;
                       return;
                     }
                     q.state = link::lost;
                     suspect(rank_of_peer, "rank " + std::to_string(rank()) + " cannot connect to " +
                                               describe_peer(rank_of_peer) + ": " + reason_of(o));
                   });
}

/// One that cannot be opened is left to fail where it connects.
inline tcp_transport::tcp::socket tcp_transport::socket_towards(const tcp::endpoint& where) const {
  tcp::socket socket(*io_);
  boost::system::error_code failed;
  socket.open(where.protocol(), failed);
  if (!failed) congestion_.before_connecting(socket, where.address(), settings_.bind_address);
  return socket;
}

inline void tcp_transport::adopt(int rank_of_peer, tcp_link wire) {
  peer& p = peer_of(rank_of_peer);
  prepare(wire.socket());
  p.connection = std::make_shared<peer_connection>(
      static_cast<peer_connection_owner&>(*this),
      stream_over(std::move(wire), p.socket, [this, rank_of_peer] { read_again(rank_of_peer); }), rank_of_peer);
  open_.push_back(rank_of_peer);
  // Between two handlers of the caller's nobody tells that this rank waits.
  if (own_io_) p.connection->gather_bursts();
  // What came right behind the greeting may have been read with it.
  if (settings_.tls != nullptr) read_again(rank_of_peer);
  opened(rank_of_peer);
}

inline void tcp_transport::prepare(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.non_blocking(true, ignored);
  close_on_exec(socket.native_handle());
}

/// Tells where the socket is from now on. `again` is for what has been read of it without being asked for.
inline std::unique_ptr<byte_stream> tcp_transport::stream_over(tcp_link wire, watched_socket*& socket,
                                                               std::function<void()> again) {
  std::unique_ptr<tls_session> session = wire.take_session();
  if (session == nullptr) {
    auto stream = std::make_unique<tcp_stream>(std::move(wire.socket()));
    socket = &stream->socket();
    return stream;
  }
  auto stream = std::make_unique<tls_stream>(std::move(wire.socket()), std::move(session), std::move(again));
  socket = &stream->socket();
  return stream;
}

// Before the next sleep, and after those who wait for a turn.
inline void tcp_transport::read_again(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  if (std::exchange(p.reads_again, true)) return;
  detail::post_to(*io_, [this, alive = alive_, c = p.connection] {
    if (!*alive || !c->open()) return;
    peer_of(c->peer()).reads_again = false;
    c->try_read();
    arm_write(c->peer());
  });
}

inline void tcp_transport::opened(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  p.state = link::open;
  while (request* const r = p.waiting.pop_front()) {
    r->place = nullptr;
    pass_on(*r);
    if (p.state != link::open) break;
  }
  if (left_ && p.state == link::open) p.connection->say_goodbye();
  arm_read(rank_of_peer);
  arm_write(rank_of_peer);
  if (!asks_sockets()) watch_sockets();
  reactor_turns_awake_ = 0;
}

/// Before a sleep, and where there are more than a turn asks.
inline void tcp_transport::watch_sockets() {
  for (std::size_t i = 0; i < open_.size();) {
    const int r = open_[i];
    peer& p = peer_of(r);
    boost::system::error_code failure;
    p.socket->watch(failure);
    if (failure) {
      on_lost(*p.connection, failure, "being watched");  // is no longer one of them
      continue;
    }
    arm_read(r);
    arm_write(r);
    ++i;
  }
}

inline void tcp_transport::unwatch(peer& p) {
  p.socket->unwatch();
  p.read_armed = p.write_armed = false;
}

inline void tcp_transport::arm_read(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  if (p.read_armed || p.state != link::open || p.socket == nullptr || p.connection->over()) return;
  if (!p.socket->watched()) return;
  p.read_armed = true;
  p.socket->when_ready(tcp::socket::wait_read,
                       [this, alive = alive_, c = p.connection](const boost::system::error_code& failure) {
                         if (!*alive || !c->open() || failure == boost::asio::error::operation_aborted) return;
                         peer_of(c->peer()).read_armed = false;
                         c->try_read();
                         arm_read(c->peer());
                         arm_write(c->peer());
                       });
}

inline void tcp_transport::arm_write(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  if (!p.lanes.empty()) arm_lanes(rank_of_peer);
  if (p.write_armed || p.state != link::open || p.socket == nullptr || !p.connection->has_output()) return;
  if (!p.socket->watched()) return;
  p.write_armed = true;
  p.socket->when_ready(tcp::socket::wait_write,
                       [this, alive = alive_, c = p.connection](const boost::system::error_code& failure) {
                         if (!*alive || !c->open() || failure == boost::asio::error::operation_aborted) return;
                         peer_of(c->peer()).write_armed = false;
                         c->try_write();
                         arm_write(c->peer());
                       });
}

inline void tcp_transport::on_lost(peer_connection& c, const boost::system::error_code& why, const char* what) {
  peer& p = peer_of(c.peer());
  if (p.state == link::lost) return c.close();  // a stripe was lost first
  p.state = link::lost;
  open_.erase(std::remove(open_.begin(), open_.end(), c.peer()), open_.end());
  links_.remove(c.peer());
  c.close();
  drop_lanes(p);
  if (p.left || c.peer_has_left()) return check_departed(c.peer());
  suspect(c.peer(), loss_text(c.peer(), why, what));
}

inline std::string tcp_transport::loss_text(int rank_of_peer, const boost::system::error_code& why,
                                            const char* what) const {
  const tcp_peer_address& a = peers_[static_cast<std::size_t>(rank_of_peer)].address;
  return "the connection between rank " + std::to_string(rank()) + " and " +
         place_of({rank_of_peer, false, a.host, a.pid, {}}) + " was lost while " + what + ": " + why.message();
}

inline void tcp_transport::suspect(int rank_of_peer, std::string text) {
  if (left_ || !joined_) return;
  // It has left in good order: that it has is still to come from the monitor.
  if (const peer& p = peer_of(rank_of_peer); p.connection && p.connection->peer_has_left()) return;
  fault f;
  f.code = errc::peer_lost;
  f.culprit = rank_of_peer;
  f.reporter = rank();
  f.text = std::move(text);
  // The peer may have said goodbye, or have told why it goes: the monitor knows, and answers.
  monitor_->report(f, {});
}

// It has left, and nothing of what it sent is on its way any more: a connection that stands says so itself. Why it
// left the monitor has told before it told that it left.
inline bool tcp_transport::is_gone(int rank_of_peer) const {
  const peer& p = peers_[static_cast<std::size_t>(rank_of_peer)];
  if (p.state == link::dialing || p.state == link::promised) return false;
  const bool said_so = p.connection && p.connection->peer_has_left();
  // Memory has no end. Who has written anything says goodbye in it too, behind what it wrote.
  if (p.state == link::open && p.memory != nullptr) {
    const bool silent = !p.memory->attached() || (monitor_->dismissed() && !p.memory->has_data());
    // Its goodbye may be here before the monitor's word on why it left.
    return (p.left || monitor_->dismissed()) && (said_so || silent);
  }
  if (p.state == link::open && !said_so) return false;
  return p.left || (said_so && monitor_->dismissed());
}

// What still needs a rank that has left in good order fails.
inline void tcp_transport::check_departed(int rank_of_peer) {
  if (peer& p = peer_of(rank_of_peer); p.left && neighbours_) {
    read_mail();
    schedule_turn();  // on a caller's io_context: a bell that was among it rings for others too
    if (p.memory != nullptr && p.state == link::open && p.memory->has_data()) (void)links_.move();
  }
  if (!is_gone(rank_of_peer)) return;
  const std::vector<group*> all = groups();
  for (group* const g : all) {
    if (g->failure() || g->rank_of(rank_of_peer) < 0 || !needs(*g, rank_of_peer)) continue;
    report_mismatch(*g, -1, rank_of_peer, errc::peer_lost, describe_departure(*g, rank_of_peer, true));
  }
}

inline bool tcp_transport::needs(const group& g, int rank_of_peer) {
  const peer& p = peer_of(rank_of_peer);
  // Collectives are judged by their numbers, while there is a judge: that tells more.
  const bool tagged_only = !monitor_->dismissed();
  const auto context = g.context();
  if (matcher_.awaits(context, rank_of_peer, tagged_only)) return true;
  if (!tagged_only && waits_.awaits(g, g.rank_of(rank_of_peer))) return true;
  if (p.connection && p.connection->awaits_grant(context, tagged_only)) return true;
  // What it had sent was on its way when its connection ended.
  if (p.state == link::lost && p.connection) {
    const stripe_set* const stripes = p.connection->stripes_if_any();
    if (stripes != nullptr && stripes->awaits(context)) return true;
  }
  for (const request* r = p.waiting.front(); r != nullptr; r = r->next) {
    if (r->header.context == context && (r->tagged() || !tagged_only)) return true;
  }
  const auto gone = [this](int member) { return member == rank() || is_gone(member); };
  return std::all_of(g.members().begin(), g.members().end(), gone) && matcher_.awaits(context, -1, tagged_only);
}

inline void tcp_transport::collect_faults(std::vector<std::shared_ptr<const fault>>& into) {
  std::vector<int> departed;
  {
    const std::lock_guard lock(mutex_);
    into.swap(faults_);
    // Why somebody left comes before that it left.
    if (into.empty()) departed.swap(departed_);
  }
  for (const auto& f : into) lost_world_ = lost_world_ || f->context == every_context;
  if (!into.empty()) return request_attention();
  for (const int r : departed) {
    peer_of(r).left = true;
    check_departed(r);
  }
  if (monitor_->dismissed()) {
    for (std::size_t r = 0; r < peers_.size(); ++r) check_departed(static_cast<int>(r));
  }
}

inline std::shared_ptr<const fault> tcp_transport::report(fault f, const group& where) {
  {
    // A verdict that has not been looked at yet came first.
    const std::lock_guard lock(mutex_);
    for (const auto& earlier : faults_) {
      if (concerns(*earlier, where)) return earlier;
    }
  }
  if (joined_) monitor_->report(f, where.members());
  const bool judged_elsewhere = joined_ && f.code == errc::timed_out && f.sequence >= 0;
  return judged_elsewhere ? nullptr : std::make_shared<const fault>(std::move(f));
}

inline void tcp_transport::group_added(group& g) {
  monitor_->add(g);
  note_hosts(g);
  place(g);
}

inline void tcp_transport::group_removed(group& g) {
  monitor_->remove(g);
  if (neighbours_) neighbours_->forget(g.context());
  for (const peer& p : peers_) {
    if (p.connection) p.connection->forget(g.context());
  }
  matcher_.forget(g.context(), drop_early);
  if (g.context() != 0) retire(g);
}

}  // namespace cohort::transport

#include <cohort/transport/impl/tcp_messages.hpp>
#include <cohort/transport/impl/tcp_turn.hpp>
