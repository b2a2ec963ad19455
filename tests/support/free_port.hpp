// SPDX-License-Identifier: BSL-1.0
// A TCP port of 127.0.0.1 that nothing uses, for tests that need to name one before anything listens on it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace harness {

namespace detail {

/// Result: the port that was bound and given back, or 0 when `port` is taken.
inline int try_port(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error(std::string("free_port: socket: ") + std::strerror(errno));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

/// The first port that the kernel may hand to any connection of any program.
inline int first_ephemeral_port() {
  int first = 32768;
  if (std::FILE* file = std::fopen("/proc/sys/net/ipv4/ip_local_port_range", "r")) {
    if (std::fscanf(file, "%d", &first) != 1) first = 32768;
    std::fclose(file);
  }
  return first;
}

}  // namespace detail

/// Result: a port below the kernel's ephemeral range, so that no connection made between this call and the bind of the
///         program under test can take it; where there is no room below, any free port.
/// Errors: std::runtime_error when no port is free
[[nodiscard]] inline int free_port() {
  constexpr int lowest = 10000;
  const int limit = detail::first_ephemeral_port();
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const bool room = limit - lowest >= 1000 && attempt < 90;
    const int wanted = room ? lowest + static_cast<int>(random() % static_cast<unsigned>(limit - lowest)) : 0;
    if (const int port = detail::try_port(wanted)) return port;
  }
  throw std::runtime_error("free_port: no free TCP port on 127.0.0.1 in 100 attempts");
}

}  // namespace harness
