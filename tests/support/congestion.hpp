// SPDX-License-Identifier: BSL-1.0
// How many of a process's connections the kernel controls by which algorithm.
#pragma once

#include <cohort/transport/tcp_congestion.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace harness {

/// How many of this process's connections have that congestion control.
inline int connections_with(const std::string& wanted) {
  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_storage other{};
    socklen_t length = sizeof other;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &length) != 0) continue;
    if (cohort::transport::congestion_control_of(fd) == wanted) ++found;
  }
  return found;
}

/// What this host uses where nothing else is asked for.
inline std::string usual_congestion_control() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string usual = cohort::transport::congestion_control_of(probe);
  ::close(probe);
  return usual;
}

/// Whether it has that one beside, and lets this user choose it.
inline bool has_congestion_control(const std::string& name) {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool has = cohort::transport::set_congestion_control(probe, name);
  ::close(probe);
  return has;
}

}  // namespace harness
