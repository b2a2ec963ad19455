// SPDX-License-Identifier: BSL-1.0
// Two ends of TLS on a pair of sockets of this process, and the folder of certificates that they use.
#pragma once

#include "tls_files.hpp"

#include <cohort/transport/tls.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

namespace harness {

/// Made once in a process that asks for it, and removed at its end.
class tls_folder {
 public:
  tls_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "cohort-tls-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("tls_folder: no folder");
    path_ = name;
    make_tls_files(path_);
  }
  tls_folder(const tls_folder&) = delete;
  tls_folder& operator=(const tls_folder&) = delete;
  ~tls_folder() {
    if (::getpid() != owner_) return;  // a rank that was forked
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }
  /// NAME.pem and NAME.key, with the job's authority or another one.
  [[nodiscard]] cohort::tls_options options(const std::string& name = "rank",
                                            const std::string& authority = "authority.pem") const {
    return {at(name + ".pem"), at(name + ".key"), at(authority)};
  }

 private:
  std::string path_{};
  pid_t owner_ = ::getpid();
};

inline const tls_folder& tls_files() {
  static const tls_folder folder;
  return folder;
}

/// Connected sockets that do not block, with room for little.
class socket_pair {
 public:
  explicit socket_pair(int room = 0) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_.data()) == 0);
    for (const int end : ends_) {
      if (room > 0) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    }
  }
  socket_pair(const socket_pair&) = delete;
  socket_pair& operator=(const socket_pair&) = delete;
  ~socket_pair() {
    close(0);
    close(1);
  }
  [[nodiscard]] int operator[](std::size_t i) const { return ends_[i]; }
  void close(std::size_t i) {
    if (ends_[i] >= 0) ::close(ends_[i]);
    ends_[i] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Both shake hands in turns until neither gets any further.
inline void shake_hands(cohort::transport::tls_session& a, cohort::transport::tls_session& b,
                        boost::system::error_code& a_failed, boost::system::error_code& b_failed) {
  using need = cohort::transport::tls_session::need;
  need of_a = need::readable;
  need of_b = need::readable;
  for (int i = 0; i < 20 && !a_failed && !b_failed && (of_a != need::nothing || of_b != need::nothing); ++i) {
    of_a = a.shake_hands(a_failed);
    of_b = b.shake_hands(b_failed);
  }
}

}  // namespace harness
