// SPDX-License-Identifier: BSL-1.0
// Bodies of connect.hpp: the store at which the ranks meet, whom they meet there, and the transport that comes of it.
#pragma once

#include <cohort/connect.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/impl/connect_address.hpp>
#include <cohort/impl/sharing_options.hpp>
#include <cohort/impl/use_tuning.hpp>
#include <cohort/rendezvous.hpp>
#include <cohort/transport/tcp.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_open_store.hpp>

#include <boost/asio/io_context.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort {
namespace detail {

[[nodiscard]] inline std::chrono::nanoseconds seconds_from(const environment& env, const char* variable,
                                                           std::chrono::nanoseconds otherwise) {
  const std::optional<std::string> text = env.get(variable);
  return text ? parse_seconds(*text, variable) : otherwise;
}

/// Result: the launcher's pipe, which COHORT_STATUS_FD names as number:device:inode; -1 when there is none, or the number
///         is another file's by now: a program in between, such as Python's subprocess, may have closed the pipe
[[nodiscard]] inline int status_pipe() noexcept {
  const char* const text = std::getenv("COHORT_STATUS_FD");
  int number = -1;
  unsigned long long device = 0;
  unsigned long long inode = 0;
  char more = 0;
  struct stat found {};
  if (text == nullptr || std::sscanf(text, "%d:%llu:%llu%c", &number, &device, &inode, &more) != 3) return -1;
  const bool same = ::fstat(number, &found) == 0 && S_ISFIFO(found.st_mode) && found.st_dev == device;
  return same && found.st_ino == inode ? number : -1;
}

/// Tells the launcher that this rank is in, if it asked to be told.
inline void report_joined(int rank, int size) {
  const int pipe = status_pipe();
  if (pipe < 0) return;
  const std::string line = "joined " + std::to_string(rank) + " " + std::to_string(size) + "\n";
  // A launcher that no longer listens is no reason to fail.
  [[maybe_unused]] const auto written = ::write(pipe, line.data(), line.size());
}

/// Every rank of a host learns which ranks each of them sees, so that all choose the same way of talking.
///
/// Result: a list for each rank of this rank's host, empty for others
[[nodiscard]] inline std::vector<std::vector<int>> exchange_neighbours(any_store& table, const connect_options& o,
                                                                       const std::vector<std::string>& hosts,
                                                                       const std::vector<int>& seen, deadline until) {
  const auto self = static_cast<std::size_t>(o.launch.rank);
  std::vector<std::vector<int>> seen_by(hosts.size());
  if (hosts[self].empty()) return seen_by;
  const auto host_of = [&hosts](std::size_t r) {
    byte_reader from(hosts[r]);
    return transport::host_address::decode(from).host;
  };
  const std::string prefix =
      "cohort/neighbours/" + std::to_string(fnv1a(o.launch.run_id)) + "/" + std::to_string(o.launch.epoch) + "/";
  std::string mine;
  byte_writer to(mine);
  for (const int r : seen) to.number(static_cast<std::uint32_t>(r));
  table.set(prefix + std::to_string(self), mine, until);
  std::vector<std::string> keys;
  std::vector<std::size_t> here;
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    if (hosts[r].empty() || host_of(r) != host_of(self)) continue;
    here.push_back(r);
    keys.push_back(prefix + std::to_string(r));
  }
  table.wait(keys, until);
  const std::vector<std::string> lists = table.multi_get(keys, until);
  for (std::size_t i = 0; i < here.size(); ++i) {
    byte_reader from(lists[i]);
    while (from.left() > 0 && from.good()) {
      seen_by[here[i]].push_back(static_cast<int>(from.number<std::uint32_t>()));
    }
  }
  return seen_by;
}

/// Result: the tuning of rank 0, which holds for all
inline tuning join_world(any_store& store, transport::tcp_transport& endpoint, const connect_options& o,
                         const boost::asio::ip::address& address, const std::string& tuned_here, deadline until) {
  peer_address self = this_process(o.launch.rank);
  self.address = address.to_string();
  self.port = endpoint.listen();
  {
    byte_writer blob(self.blob);
    blob.number(o.launch.rank == 0 ? endpoint.host_monitor() : std::uint16_t{0}).text(endpoint.open_host());
    blob.text(tuned_here);
  }
  rendezvous_options meeting;
  meeting.world_size = o.launch.world_size;
  meeting.timeout = o.join_timeout;
  meeting.run_id = o.launch.run_id;
  meeting.epoch = o.launch.epoch;
  const std::vector<peer_address> table = rendezvous(store, self, meeting);
  std::vector<transport::tcp_peer_address> peers;
  std::vector<std::string> hosts;
  std::uint16_t port = 0;
  std::string agreed;
  for (const peer_address& p : table) {
    byte_reader blob(p.blob);
    const auto its_port = blob.number<std::uint16_t>();
    if (p.rank == 0) port = its_port;
    hosts.emplace_back(blob.text(1024));
    const std::string_view tuned = blob.text(8192);
    if (p.rank == 0) agreed = tuned;
    if (!blob.complete()) {
      throw error(errc::protocol_error, "rank " + std::to_string(p.rank) +
                                            " has told the others something about "
                                            "itself that this version does not understand");
    }
    transport::tcp_peer_address a;
    a.where = transport::tcp_endpoint(boost::asio::ip::make_address(p.address), p.port);
    a.host = p.host;
    a.pid = p.pid;
    peers.push_back(std::move(a));
  }
  endpoint.agree_on_neighbours(exchange_neighbours(store, o, hosts, endpoint.meet_neighbours(hosts, until), until));
  const transport::tcp_endpoint monitor(peers.front().where.address(), port);
  // The store stays open on rank 0 until everybody is connected: `join` is that barrier.
  endpoint.join(std::move(peers), monitor, until);
  return parse_tuning(agreed);
}

/// What rank 0 knows of those who are missing: that somebody had come, and why TLS let nobody in.
[[nodiscard]] inline error with_refusal(const error& e, const std::string& refused) {
  error_details details;
  details.rank = e.rank();
  details.peer = e.peer();
  details.host = e.host();
  details.operation = e.operation();
  details.elapsed = e.elapsed();
  return error(e.condition(), std::string(e.what()) + "; " + refused, details);
}

COHORT_DECL communicator<cpu> connect_cpu(const connect_options& o, boost::asio::io_context* io, any_store* store) {
  const deadline until = deadline_after(o.join_timeout);
  transport::require_congestion_control(o.congestion_control);
  transport::require_stripes(o.stripes);
  transport::tcp_settings s;
  s.rank = o.launch.rank;
  s.size = o.launch.world_size;
  s.bind_address = listen_address(o.launch, o.bind_address, until);
  s.host = this_process(o.launch.rank).host;
  s.run_id = o.launch.run_id;
  s.secret = o.launch.secret;
  s.tls = transport::open_tls(o.launch.tls);
  s.epoch = o.launch.epoch;
  s.peer_timeout = o.peer_timeout;
  s.shared_memory = o.shared_memory;
  s.copies = o.copies;
  s.host_id = o.host_id;
  s.congestion_control = o.congestion_control;
  s.stripes = o.stripes;
  const boost::asio::ip::address address = s.bind_address;
  std::vector<int> members(static_cast<std::size_t>(s.size));
  for (int r = 0; r < s.size; ++r) members[static_cast<std::size_t>(r)] = r;
  const int rank = s.rank;
  auto endpoint = std::make_shared<transport::tcp_transport>(std::move(s), io);
  // The group exists before anybody may ask what this rank has called.
  const auto world = std::make_shared<group>(endpoint, 0, "world", std::move(members), rank);
  world->default_timeout = o.timeout;
  world->selection.override_with(o.algorithms);
  if (o.launch.world_size > 1) {
    // What is wrong with it is said before anybody joins.
    const std::string tuned_here = rank == 0 ? to_string(read_tuning(o.tuning)) : std::string{};
    std::optional<opened_store> own;
    if (store == nullptr) own.emplace(open_store(o.launch, until));
    any_store& meeting_place = store == nullptr ? own->table : *store;
    try {
      use_tuning(*world, join_world(meeting_place, *endpoint, o, address, tuned_here, until));
    } catch (const error& e) {
      const std::string refused = own && own->server ? own->server->last_refusal() : std::string{};
      if (e.condition() != errc::rendezvous_timeout || refused.empty()) throw;
      throw with_refusal(e, refused);
    }
    world->selection.override_with(o.algorithms);  // they come before the tuning's
  }
  report_joined(rank, o.launch.world_size);
  return communicator<cpu>(world);
}

}  // namespace detail

COHORT_DECL connect_options options_from_environment(const environment& env) {
  connect_options o;
  o.launch = launch_from_environment(env);
  o.timeout = detail::seconds_from(env, "COHORT_TIMEOUT", o.timeout);
  o.join_timeout = detail::seconds_from(env, "COHORT_JOIN_TIMEOUT", o.join_timeout);
  o.peer_timeout = detail::seconds_from(env, "COHORT_PEER_TIMEOUT", o.peer_timeout);
  if (o.peer_timeout < std::chrono::milliseconds{200}) {
    throw error(errc::bad_environment, "COHORT_PEER_TIMEOUT is below 0.2 s: a busy host would be taken for a dead one");
  }
  o.bind_address = env.get("COHORT_BIND_ADDRESS").value_or("");
  o.algorithms = env.get("COHORT_ALGORITHMS").value_or("");
  o.tuning = env.get("COHORT_TUNING").value_or("");
  o.congestion_control = env.get("COHORT_TCP_CONGESTION").value_or("");
  if (const std::optional<std::string> stripes = env.get("COHORT_TCP_STRIPES"); stripes && *stripes != "auto") {
    const std::optional<std::int64_t> number = detail::whole_integer(*stripes);
    if (!number || *number < 1 || *number > transport::most_stripes) {
      throw error(errc::bad_environment, "COHORT_TCP_STRIPES=" + detail::quoted(*stripes) +
                                             ": expected auto, or the number of connections for a long message, 1 to " +
                                             std::to_string(transport::most_stripes));
    }
    o.stripes = static_cast<int>(*number);
  }
  detail::read_sharing(o, env);
  return o;
}

}  // namespace cohort
