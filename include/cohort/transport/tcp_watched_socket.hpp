// SPDX-License-Identifier: BSL-1.0
// A connected TCP socket that is in the reactor only while somebody waits there for it: the kernel tells a reactor of each
// message that comes, which costs its sender a twentieth of what a short one takes, and is in vain where the receiver asks
// the socket itself. Used by tcp_stream.hpp, tls_stream.hpp and, for when to do it, tcp.hpp.
#pragma once

#include <cohort/transport/tcp_calls.hpp>

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace cohort::transport {

/// Read and written by its native handle, which stays the same until it is closed.
class watched_socket {
 public:
  using socket_type = boost::asio::ip::tcp::socket;

  /// Needs: `socket` is connected; from then on it is in the reactor
  explicit watched_socket(socket_type socket) : socket_(std::move(socket)), handle_(socket_.native_handle()) {
    boost::system::error_code gone;
    local_ = socket_.local_endpoint(gone);
  }
  watched_socket(const watched_socket&) = delete;
  watched_socket& operator=(const watched_socket&) = delete;
  // What a forked process has is a copy, whose end must not end the connection.
  ~watched_socket() {
    if (is_open() && !watched()) ::close(handle_);
  }

  [[nodiscard]] int native_handle() const noexcept { return handle_; }
  [[nodiscard]] const boost::asio::ip::tcp::endpoint& local() const noexcept { return local_; }
  [[nodiscard]] bool is_open() const noexcept { return handle_ >= 0; }
  [[nodiscard]] bool watched() const noexcept { return socket_.is_open(); }

  /// From now on the reactor can be asked to tell when it is ready.
  ///
  /// Errors: what the kernel says if it can watch no more sockets
  void watch(boost::system::error_code& failure) {
    if (is_open() && !watched()) socket_.assign(local_.protocol(), handle_, failure);
  }
  /// Whoever waits in the reactor is told that this was cancelled (operation_aborted).
  void unwatch() {
    boost::system::error_code ignored;
    if (watched()) (void)socket_.release(ignored);
  }
  /// Calls `then` when the socket is ready. Needs: it is watched
  void when_ready(socket_type::wait_type what, detail::io_handler then) {
    detail::when_ready(socket_, what, std::move(then));
  }

  /// Nagle's algorithm: whether a short segment waits until the peer has acknowledged the one before it. False: it does not.
  bool let_wait(bool may) noexcept { return set(TCP_NODELAY, may ? 0 : 1); }
  /// What has been read of it is acknowledged now, not when there is an answer, or 40 ms later.
  void acknowledge() noexcept {
    // An even number: this once. With an odd one the kernel acknowledges each segment by itself for a while.
    set(TCP_QUICKACK, 2);
  }

  /// In good order: the peer gets what has been sent.
  void close() noexcept {
    const int mine = std::exchange(handle_, -1);
    if (mine < 0) return;
    ::shutdown(mine, SHUT_WR);
    boost::system::error_code ignored;
    if (watched()) socket_.close(ignored);
    else ::close(mine);
  }

 private:
  bool set(int option, int value) noexcept {
    return ::setsockopt(handle_, IPPROTO_TCP, option, &value, sizeof value) == 0;
  }

  socket_type socket_;
  boost::asio::ip::tcp::endpoint local_{};
  int handle_;
};

}  // namespace cohort::transport
