// SPDX-License-Identifier: BSL-1.0
// Where a rank listens, and where it finds rank 0. Part of the bodies of connect.hpp.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/launch_info.hpp>
#include <cohort/store.hpp>
#include <cohort/transport/tcp_address.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/udp.hpp>

#include <chrono>
#include <string>
#include <thread>

namespace cohort::detail {

/// The address of this host from which `master` is reached.
[[nodiscard]] inline boost::asio::ip::address address_towards(const transport::tcp_endpoint& master) {
  if (master.address().is_loopback()) return master.address();
  boost::asio::io_context io;
  const boost::asio::ip::udp::endpoint there(master.address(), master.port());
  boost::asio::ip::udp::socket probe(io, there.protocol());
  // Connecting a datagram socket sends nothing: it asks the routing table.
  boost::system::error_code failure;
  probe.connect(there, failure);
  if (failure) throw transport::network_error("route to", transport::plain(master), failure);
  return probe.local_endpoint().address();
}

/// Where rank 0 is; its name may still be on its way to the name servers.
[[nodiscard]] inline transport::tcp_endpoint find_master(const launch_info& info, deadline until) {
  constexpr std::chrono::milliseconds pause{500};
  for (;;) {
    try {
      return transport::resolve(info.master_addr, info.master_port, until).front();
    } catch (const error& e) {
      const bool late = info.address_comes_late && e.condition() == errc::cannot_resolve;
      if (!late || std::chrono::steady_clock::now() + pause >= until) throw;
    }
    std::this_thread::sleep_for(pause);
  }
}

[[nodiscard]] inline boost::asio::ip::address listen_address(const launch_info& info, const std::string& bind_address,
                                                             deadline until) {
  if (info.world_size == 1) return boost::asio::ip::address_v4::loopback();
  boost::asio::ip::address chosen = boost::asio::ip::address_v4::loopback();
  if (!bind_address.empty()) {
    chosen = transport::resolve(bind_address, 0, until).front().address();
  } else if (!info.master_addr.empty()) {
    chosen = address_towards(find_master(info, until));
  }
  transport::require_safe_listener({chosen.to_string(), 0}, !info.secret.empty(), info.insecure_network);
  return chosen;
}

}  // namespace cohort::detail
