// SPDX-License-Identifier: BSL-1.0
// Which congestion control the kernel uses for a connection between ranks: what the user names, plain Reno where both
// ends are on one host, what the host uses otherwise. Chosen before there is a connection: the kernel goes on pacing one that BBR
// has begun to pace, by a timer for each segment, whatever takes its place.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::transport {

/// Result: whether this host has it and this user may choose it
inline bool set_congestion_control(int socket, std::string_view name) noexcept {
  return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

/// What the socket has, or what it will have once it is connected; "" if the kernel does not say.
inline std::string congestion_control_of(int socket) {
  char name[32] = {};
  socklen_t size = sizeof name - 1;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 ? std::string(name) : std::string{};
}

/// Tries it out, before anybody is joined.
///
/// Errors: invalid_argument, with what this host has, if it has none of that name or does not let this user choose it
inline void require_congestion_control(const std::string& name) {
  if (name.empty()) return;
  boost::asio::io_context nobody;
  boost::asio::ip::tcp::socket trial(nobody, boost::asio::ip::tcp::v4());
  if (set_congestion_control(trial.native_handle(), name)) return;
  const int why = errno;
  std::string available = "unknown";
  const int file = ::open("/proc/sys/net/ipv4/tcp_available_congestion_control", O_RDONLY | O_CLOEXEC);
  char text[512];
  const ssize_t length = file < 0 ? 0 : ::read(file, text, sizeof text);
  if (file >= 0) ::close(file);
  if (length > 1) available.assign(text, static_cast<std::size_t>(length - 1));  // but for the end of the line
  throw error(errc::invalid_argument, "congestion control " + cohort::detail::quoted(name) + ": " + std::strerror(why) +
                                          "; this host has: " + available);
}

/// The choice of one rank.
///
/// Cost: Reno sends as fast as the reader reads; what paces by measured rates halves the rate of a loopback
class congestion_choice {
 public:
  using tcp = boost::asio::ip::tcp;

  /// Needs: `named` is empty, or has been tried out
  explicit congestion_choice(std::string named) : named_(std::move(named)) {}

  /// For what it accepts from now on, of which nobody can tell yet where it comes from.
  void before_accepting(tcp::acceptor& from) {
    of_this_host_ = congestion_control_of(from.native_handle());
    set_congestion_control(from.native_handle(), named_.empty() ? on_one_host : std::string_view{named_});
  }
  /// Needs: an open socket; `own` is where this rank listens
  void before_connecting(tcp::socket& socket, const boost::asio::ip::address& to,
                         const boost::asio::ip::address& own) const {
    if (!named_.empty()) {
      set_congestion_control(socket.native_handle(), named_);
    } else if (to.is_loopback() || to == own) {
      set_congestion_control(socket.native_handle(), on_one_host);
    }
  }
  /// It has been accepted, and tells where it comes from.
  void after_accepting(tcp::socket& connection) const {
    boost::system::error_code unknown;
    const auto other_end = connection.remote_endpoint(unknown).address();
    if (unknown || !named_.empty()) return;
    const bool one_host = other_end.is_loopback() || other_end == connection.local_endpoint(unknown).address();
    // One that comes by a route with a congestion control of its own has that.
    if (!one_host && congestion_control_of(connection.native_handle()) == on_one_host) {
      set_congestion_control(connection.native_handle(), of_this_host_);
    }
  }

 private:
  static constexpr std::string_view on_one_host = "reno";

  std::string named_;
  std::string of_this_host_{};
};

}  // namespace cohort::transport
