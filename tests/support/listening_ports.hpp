// SPDX-License-Identifier: BSL-1.0
// The ports that a rank has opened, for tests that knock at all of them.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <set>

namespace harness {

/// The TCP ports on which this process listens.
inline std::set<std::uint16_t> listening_ports() {
  std::set<std::uint16_t> ports;
  for (int fd = 3; fd < 256; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_in address{};
    size = sizeof address;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) ports.insert(ntohs(address.sin_port));
  }
  return ports;
}

}  // namespace harness
