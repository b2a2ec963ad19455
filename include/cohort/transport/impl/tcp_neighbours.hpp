// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp.hpp: what it does with the ranks of its own host, and how it sleeps while they may write.
#pragma once

#include <cohort/transport/tcp.hpp>
#include <cohort/transport/tcp_calls.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cohort::transport {

/// Where this process is to be found; the first word of its host is the kernel's.
[[nodiscard]] inline host_address own_host_address(const std::string& host_id) {
  // Two processes can share memory when the kernel is the same boot of the same machine and they find each other's
  // sockets and process numbers: in one network and one process namespace, under one user.
  const auto link = [](const char* path) {
    char text[64] = {};
    return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(0, ::readlink(path, text, sizeof text - 1))));
  };
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  host_address a;
  a.host = boot + " " + link("/proc/self/ns/net") + " " + link("/proc/self/ns/pid") + " " +
           std::to_string(::geteuid()) + " " + host_id;
  std::random_device entropy;
  const auto word = [&entropy] { return (std::uint64_t{entropy()} << 32) | entropy(); };
  a.mail = "cohort-" + std::to_string(word()) + std::to_string(word());
  a.word = word();
  a.cores = detail::core_set::usable();
  return a;
}

/// Ranks that may not share memory share the processors all the same.
[[nodiscard]] inline std::string_view machine_of(const host_address& a) noexcept {
  return std::string_view(a.host).substr(0, a.host.find(' '));
}

/// How many ranks there are on the cores that one of them may use, and on those that they may.
struct core_share {
  int ranks = 0;
  int cores = 1;

  [[nodiscard]] static core_share of(const host_address& mine, const std::vector<host_address>& all) {
    core_share s;
    detail::core_set cores = mine.cores;
    for (const host_address& a : all) {
      if (machine_of(a) != machine_of(mine) || !a.cores.may_meet(mine.cores)) continue;
      ++s.ranks;
      cores.add(a.cores);
    }
    s.cores = std::max(1, cores.count());
    return s;
  }
};

inline std::string tcp_transport::open_host() {
  if (size() == 1) return {};
  host_address mine = own_host_address(settings_.host_id);
  if (!settings_.shared_memory) {
    // A host of its own, where nobody can write to it.
    mine.host = std::string(machine_of(mine)) + " " + mine.mail;
    mine.mail.clear();
    return mine.encode();
  }
  neighbours_ = std::make_unique<neighbours>(rank(), size(), std::move(mine));
  regions_ = std::make_unique<regions>(*neighbours_);
  return neighbours_->address().encode();
}

inline std::vector<int> tcp_transport::meet_neighbours(const std::vector<std::string>& what_they_said,
                                                       clock::time_point until) {
  std::vector<host_address> all;
  for (const std::string& text : what_they_said) {
    detail::byte_reader from(text);
    host_address a = host_address::decode(from);
    all.push_back(from.complete() ? std::move(a) : host_address{});
  }
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
  const core_share share = core_share::of(all[static_cast<std::size_t>(rank())], all);
  // Each look at a socket is a call of the kernel's, so that thousands of them are no way to wait.
  if (neighbours_ || share.ranks > share.cores) how_to_wait().among(share.ranks, share.cores);
  if (!neighbours_) return {};
  // They have all read the same table and send at once: what takes seconds does not come.
  constexpr auto patience = std::chrono::seconds{10};
  return neighbours_->meet(std::move(all), std::min(until, clock::now() + patience));
}

inline void tcp_transport::agree_on_neighbours(const std::vector<std::vector<int>>& seen_by) {
  if (!neighbours_) return;
  neighbours_->agree(seen_by);
  const int copy = ::fcntl(neighbours_->descriptor(), F_DUPFD_CLOEXEC, 3);
  if (copy < 0) {
    throw error(errc::io_error, std::string{"no descriptor left for the ranks of this host: "} + std::strerror(errno) +
                                    "; raise the limit (ulimit -n)");
  }
  mail_.emplace(*io_, copy);
  watch_mail();
  // On a caller's io_context nobody looks at memory between two handlers: whoever writes rings, always.
  if (!own_io_) neighbours_->fall_asleep();
  for (group* const g : groups()) share_window(*g);
}

inline void tcp_transport::watch_mail() {
  detail::when_readable(*mail_, [this, alive = alive_](const boost::system::error_code& failure) {
    if (!*alive || failure) return;
    read_mail();
    watch_mail();
    // On a caller's io_context nobody polls: a letter is the sign that there is something to do.
    if (!own_io_) poll();
  });
}

inline void tcp_transport::read_mail() {
  (void)neighbours_->collect();
  const auto is_link = [](const letter& l) { return l.kind == letter_kind::link; };
  while (std::optional<received_letter> l = neighbours_->take(is_link)) {
    peer& p = link_up(l->text.from);
    if (p.memory == nullptr || p.memory->attached()) continue;
    try {
      p.memory->attach(std::move(l->enclosed));
    } catch (const error& e) {
      suspect(l->text.from, "rank " + std::to_string(rank()) + " cannot use the memory that rank " +
                                std::to_string(l->text.from) + " shares: " + e.what());
    }
  }
}

// The connection to a rank of this host; the ring in either direction is made by whoever writes to it.
inline tcp_transport::peer& tcp_transport::link_up(int rank_of_peer) {
  peer& p = peer_of(rank_of_peer);
  if (p.state != link::none) return p;
  auto stream = std::make_unique<shm_stream>(*neighbours_, rank_of_peer, p.address.pid);
  p.memory = stream.get();
  p.connection =
      std::make_shared<peer_connection>(static_cast<peer_connection_owner&>(*this), std::move(stream), rank_of_peer);
  links_.push_back(rank_of_peer);
  opened(rank_of_peer);
  return p;
}

inline bool tcp_transport::move_links() {
  bool moved = false;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const peer& p = peer_of(links_[i]);
    const bool writes = p.connection->has_output() && p.memory->has_room();
    const bool reads = p.memory->has_data();
    if (!writes && !reads) continue;
    const std::shared_ptr<peer_connection> c = p.connection;
    if (writes) moved = c->try_write() || moved;
    if (reads && c->open()) moved = c->try_read() || moved;
  }
  return moved;
}

// Whether a rank of this host has written something that this one has not seen.
inline bool tcp_transport::neighbours_wait() {
  if (waits_.any_reached()) return true;
  return std::any_of(links_.begin(), links_.end(), [this](int r) {
    const peer& p = peer_of(r);
    return p.memory->has_data() || (p.connection->has_output() && p.memory->has_room());
  });
}

inline void tcp_transport::note_hosts(group& g) const {
  if (host_marks_.empty()) return;
  std::vector<int> marks;
  for (const int member : g.members()) marks.push_back(host_marks_[static_cast<std::size_t>(member)]);
  auto where = std::make_shared<const collective::host_table>(marks);
  if (where->has_two_levels()) g.hosts = std::move(where);
}

inline void tcp_transport::share_window(group& g) {
  if (!neighbours_ || g.size() < 2 || !neighbours_->all_share(g.members())) return;
  g.window = std::make_shared<shm_window>(g.rank(), g.size());
}

}  // namespace cohort::transport
