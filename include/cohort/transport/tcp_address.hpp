// SPDX-License-Identifier: BSL-1.0
// Host names to TCP addresses within a deadline, which addresses may be listened on, and what the system's refusals
// mean. Below the TCP store and the TCP transport.
#pragma once

#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/uri.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace cohort::transport {

using tcp_endpoint = boost::asio::ip::tcp::endpoint;

[[nodiscard]] inline endpoint plain(const tcp_endpoint& e) { return {e.address().to_string(), e.port()}; }

namespace tcp_detail {

/// An IPv4 address that is written as one of IPv6, such as ::ffff:127.0.0.1, as what it is: a socket for IPv6 alone,
/// which is what is listened with, cannot have it.
[[nodiscard]] inline boost::asio::ip::address unmapped(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
}

struct resolution {
  std::mutex mutex{};
  std::condition_variable changed{};
  bool over = false;
  int status = 0;
  int system_errno = 0;
  std::vector<tcp_endpoint> found{};
};

inline void look_up(const std::string& host, std::uint16_t port, resolution& out) noexcept try {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  const int system_errno = errno;
  std::vector<tcp_endpoint> found;
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    tcp_endpoint e;
    if (at->ai_addrlen > e.capacity()) continue;
    std::memcpy(e.data(), at->ai_addr, at->ai_addrlen);
    e.resize(at->ai_addrlen);
    e = tcp_endpoint(unmapped(e.address()), port);
    if (std::find(found.begin(), found.end(), e) == found.end()) found.push_back(e);
  }
  if (list != nullptr) ::freeaddrinfo(list);
  const std::lock_guard lock(out.mutex);
  out.over = true;
  out.status = status;
  out.system_errno = system_errno;
  out.found = std::move(found);
  out.changed.notify_all();
} catch (...) {  // only memory can be lacking; the thread has nobody to throw to
  const std::lock_guard lock(out.mutex);
  out.over = true;
  out.status = EAI_MEMORY;
  out.changed.notify_all();
}

[[nodiscard]] inline error cannot_resolve(const std::string& host, const std::string& why) {
  error_details details;
  details.operation = "resolve";
  return error(errc::cannot_resolve, "cannot resolve host " + detail::quoted(host) + ": " + why, details);
}

}  // namespace tcp_detail

/// The addresses of a host, in the order in which they should be tried; those of IPv4 never as IPv6 writes them.
///
/// Errors: cannot_resolve with the resolver's words; io_error when there is no thread to ask it on
/// Cost:   none for a numeric address. A name is looked up on a thread of its own, which is left behind when the
///         deadline passes: the system's resolver cannot be interrupted
[[nodiscard]] inline std::vector<tcp_endpoint> resolve(const std::string& host, std::uint16_t port, deadline until) {
  boost::system::error_code not_numeric;
  const boost::asio::ip::address numeric = boost::asio::ip::make_address(host, not_numeric);
  if (!not_numeric) return {tcp_endpoint(tcp_detail::unmapped(numeric), port)};

  for (auto pause = std::chrono::milliseconds(100);; pause = std::min(pause * 2, std::chrono::milliseconds(1000))) {
    const auto answer = std::make_shared<tcp_detail::resolution>();
    try {
      std::thread([host, port, answer] { tcp_detail::look_up(host, port, *answer); }).detach();
    } catch (const std::system_error& e) {
      throw error(errc::io_error, std::string("no thread for the resolver: ") + e.what());
    }
    std::unique_lock lock(answer->mutex);
    const auto over = [&] { return answer->over; };
    if (until == deadline::max()) {
      answer->changed.wait(lock, over);
    } else if (!answer->changed.wait_until(lock, std::max(until, std::chrono::steady_clock::now() + store_grace),
                                           over)) {
      throw tcp_detail::cannot_resolve(host, "the resolver has not answered in time");
    }
    if (answer->status == 0 && !answer->found.empty()) return answer->found;
    const bool passing = answer->status == EAI_AGAIN && std::chrono::steady_clock::now() + pause < until;
    if (!passing) {
      const bool system = answer->status == EAI_SYSTEM;
      throw tcp_detail::cannot_resolve(host, system ? std::generic_category().message(answer->system_errno)
                                                    : std::string(::gai_strerror(answer->status)));
    }
    answer->changed.wait_for(lock, pause, [] { return false; });  // "temporary failure": name servers start late too
  }
}

/// Refuses to listen where strangers could connect, unless they need a secret or the caller wants them to.
///
/// Errors: insecure_network
inline void require_safe_listener(const endpoint& at, bool has_secret, bool insecure_network) {
  if (has_secret || insecure_network || is_loopback_address(at.host)) return;
  throw error(errc::insecure_network,
              "listening on " + to_string(at) +
                  " without a job secret would let anyone who reaches it join; start the " +
                  "ranks with `cohort run`, which makes a secret, or set COHORT_SECRET to the same 16 or more random " +
                  "bytes on every rank, or accept the risk with COHORT_INSECURE_NETWORK=1");
}

/// The errc and the sentence for what the system said when something was tried at an address.
[[nodiscard]] inline error network_error(const std::string& doing, const endpoint& at,
                                         const boost::system::error_code& code, const std::string& advice = {}) {
  namespace failures = boost::asio::error;
  errc condition = errc::io_error;
  if (code == failures::connection_refused) condition = errc::connection_refused;
  if (code == failures::address_in_use) condition = errc::address_in_use;
  if (code == failures::timed_out) condition = errc::timed_out;
  error_details details;
  details.operation = doing;
  return error(condition, doing + " " + to_string(at) + ": " + code.message() + advice, details);
}

/// Keeps a socket from being inherited by programs that the process starts.
inline void close_on_exec(int socket) noexcept {
  const int flags = ::fcntl(socket, F_GETFD);
  if (flags >= 0) (void)::fcntl(socket, F_SETFD, flags | FD_CLOEXEC);
}

/// A listening socket on exactly this address, not inherited by other programs; on IPv6 for IPv6 alone.
///
/// Result: the port, chosen by the system if `where` has none
/// Errors: address_in_use, io_error, naming the address
inline std::uint16_t listen_on(boost::asio::ip::tcp::acceptor& acceptor, const tcp_endpoint& where) {
  boost::system::error_code failure;
  acceptor.open(where.protocol(), failure);
  if (!failure) close_on_exec(acceptor.native_handle());
  if (!failure && where.address().is_v6()) acceptor.set_option(boost::asio::ip::v6_only(true), failure);
  if (!failure) acceptor.bind(where, failure);
  if (!failure) acceptor.listen(boost::asio::socket_base::max_listen_connections, failure);
  if (failure) {
    throw network_error("listen on", plain(where), failure, "; COHORT_BIND_ADDRESS names the address to listen on");
  }
  return acceptor.local_endpoint().port();
}

}  // namespace cohort::transport
