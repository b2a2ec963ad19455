// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: what it does with the ranks of its own host, and how it sleeps while they may write.
#pragma once

#include <cohort/collective/hosts.hpp>
#include <cohort/transport/impl/sharing_engine.hpp>
#include <cohort/transport/tcp.hpp>
#include <cohort/transport/tcp_calls.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace cohort::transport {

inline std::string tcp_transport::open_host() {
  if (size() == 1) return {};
  links_.copy_by(settings_.copies);
  return open_memory(settings_.host_id, settings_.shared_memory).encode();
}

inline std::vector<int> tcp_transport::meet_neighbours(const std::vector<std::string>& what_they_said,
                                                       clock::time_point until) {
  std::vector<host_address> all = read_addresses(what_they_said);
  // A rank that shares no memory is a host of its own, for itself as for all others.
  std::unordered_map<std::string_view, int> first_on;
  for (const host_address& a : all) {
    const int r = static_cast<int>(host_marks_.size());
    host_marks_.push_back(a.host.empty() ? r : first_on.try_emplace(a.host, r).first->second);
  }
  for (group* const g : groups()) note_hosts(*g);
  const std::string_view machine = machine_of(all[static_cast<std::size_t>(rank())]);
  ranks_on_machine_ = static_cast<int>(
      std::count_if(all.begin(), all.end(), [machine](const host_address& a) { return machine_of(a) == machine; }));
  look_at_cores(all);
  wait_beside(all);
  if (!neighbours_) {
    for (group* const g : groups()) place(*g);
    return {};
  }
  // They have all read the same table and send at once: what takes seconds does not come.
  constexpr auto patience = std::chrono::seconds{10};
  return neighbours_->meet(std::move(all), std::min(until, clock::now() + patience));
}

inline void tcp_transport::agree_on_neighbours(const std::vector<std::vector<int>>& seen_by) {
  if (!neighbours_) return;
  neighbours_->agree(seen_by);
  watch_fellows();
  const int copy = ::fcntl(neighbours_->descriptor(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) {
    throw error(errc::io_error, std::string{"no descriptor left for the ranks of this host: "} + std::strerror(errno) +
                                    "; raise the limit (ulimit -n)");
  }
  mail_.emplace(*io_, copy);
  watch_mail();
  neighbours_->when_full([this] { await_room(); });
  if (neighbours_->has_waiting()) await_room();
  // On a caller's io_context nobody looks at memory between two handlers: whoever writes rings, always.
  if (!own_io_) neighbours_->fall_asleep();
  for (group* const g : groups()) place(*g);
}

inline bool tcp_transport::writes_to(int to) const {
  return to != rank() && !(neighbours_ && neighbours_->shares(rank(), to));
}

inline void tcp_transport::watch_mail() {
  detail::when_readable(*mail_, [this, alive = alive_](const boost::system::error_code& failure) {
    if (!*alive || failure) return;
    read_mail();
    watch_mail();
    // On a caller's io_context nobody polls: a letter is the sign that there is something to do.
    if (!own_io_) turn_from_handler();
  });
}

// A letter waits for room in another rank's mailbox, of which nothing tells but another attempt.
inline void tcp_transport::await_room(std::chrono::microseconds pause) {
  if (std::exchange(awaits_room_, true)) return;
  room_timer_.expires_after(pause);
  detail::when_expired(room_timer_, [this, pause, alive = alive_](const boost::system::error_code& cancelled) {
    if (!*alive || cancelled) return;
    awaits_room_ = false;
    const std::size_t before = neighbours_->waiting();
    read_mail();
    const bool moves = neighbours_->waiting() < before;
    if (neighbours_->has_waiting() && !left_) await_room(moves ? shortest_pause : std::min(2 * pause, longest_pause));
    if (!own_io_) turn_from_handler();
  });
}

inline void tcp_transport::read_mail() {
  (void)neighbours_->collect();
  shm_links::take_rings(
      *neighbours_, [this](int r) { return link_up(r).memory; },
      [this](int r, const error& e) {
        suspect(r, "rank " + std::to_string(rank()) + " cannot use the memory that rank " + std::to_string(r) +
                       " shares: " + e.what());
      });
}

// The connection to a rank of this host.
inline tcp_transport::peer& tcp_transport::link_up(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  if (p.state != link::none) return p;
  const shm_links::link& l =
      links_.open(*neighbours_, static_cast<peer_connection_owner&>(*this), rank_of_peer, p.address.pid);
  p.memory = l.memory;
  p.connection = l.connection;
  opened(rank_of_peer);
  return p;
}

inline bool tcp_transport::read_memory_of(int rank_of_peer, const piece& from, const piece& into) {
  return links_.kernel_may_copy() && process_memory(peer_of(rank_of_peer).address.pid).read({&from, 1}, {&into, 1});
}

inline void tcp_transport::note_hosts(group& g) const {
  if (host_marks_.empty()) return;
  std::vector<int> marks;
  for (const int member : g.members()) marks.push_back(host_marks_[static_cast<std::size_t>(member)]);
  auto where = std::make_shared<const collective::host_table>(marks);
  if (where->has_two_levels()) g.hosts = std::move(where);
}

}  // namespace cohort::transport
