// SPDX-License-Identifier: BSL-1.0
// Which congestion control the kernel uses for a connection between ranks: what the user names, plain Reno where both
// ends are on one host, what the host uses otherwise.
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

namespace cohort::transport {

/// Result: whether this host has it and this user may choose it
inline bool set_congestion_control(int socket, const std::string& name) noexcept {
  return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
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

/// For a connection that has just been made.
///
/// Cost: Reno sends as fast as the reader reads; what paces by measured rates halves the rate of a loopback
inline void choose_congestion_control(boost::asio::ip::tcp::socket& connection, const std::string& named) noexcept {
  boost::system::error_code unknown;
  const auto other_end = connection.remote_endpoint(unknown);
  if (!named.empty()) {
    set_congestion_control(connection.native_handle(), named);  // it was tried out before
  } else if (!unknown && other_end.address().is_loopback()) {
    set_congestion_control(connection.native_handle(), "reno");  // one that is not there leaves what the host uses
  }
}

}  // namespace cohort::transport
