// SPDX-License-Identifier: BSL-1.0
// A byte_stream over a TCP socket: one system call for all pieces.
#pragma once

#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/tcp_watched_socket.hpp>

#include <boost/asio/error.hpp>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace cohort::transport {

class tcp_stream final : public byte_stream {
 public:
  explicit tcp_stream(watched_socket::socket_type socket) : socket_(std::move(socket)) {}

  [[nodiscard]] watched_socket& socket() noexcept { return socket_; }

  // A list of pieces costs the kernel 0.1 µs more than one, in which 4 KiB are copied: what is at most half of that, with a header,
  // is put together.
  // What needs room on the stack is apart: between a short message and its answer the same few lines of it are used.
  std::size_t send(std::span<const piece> from, boost::system::error_code& failure) override {
    if (from.size() == 1) return send_one(from[0], failure);
    std::size_t total = 0;
    for (const piece& p : from) total += p.bytes;
    if (total <= longest_gathered) return send_together(from, total, failure);
    return transfer(from, failure, [](int fd, msghdr& m) { return ::sendmsg(fd, &m, sending); });
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code& failure) override {
    std::size_t wanted = 0;
    std::size_t got = 0;
    if (into.size() == 1) {
      wanted = into[0].bytes;
      got = attempt(failure, [&](int fd) { return ::recv(fd, into[0].data, wanted, MSG_DONTWAIT); });
    } else {
      for (const piece& p : into) wanted += p.bytes;
      got = transfer(into, failure, [](int fd, msghdr& m) { return ::recvmsg(fd, &m, MSG_DONTWAIT); });
    }
    if (got == 0 && wanted > 0 && !failure && !blocked_) failure = boost::asio::error::eof;
    return got;
  }
  void close() noexcept override { socket_.close(); }
  bool let_wait(bool may) noexcept override { return socket_.let_wait(may); }
  void acknowledge() noexcept override { socket_.acknowledge(); }
  [[nodiscard]] std::size_t eager_limit() const noexcept override { return std::size_t{1} << 20; }

 private:
  static constexpr std::size_t most_pieces = 64;
  static constexpr std::size_t longest_gathered = (std::size_t{2} << 10) + 64;

  static constexpr int sending = MSG_DONTWAIT | MSG_NOSIGNAL;

  std::size_t send_one(const piece& all, boost::system::error_code& failure) {
    return attempt(failure, [&](int fd) { return ::send(fd, all.data, all.bytes, sending); });
  }
  [[gnu::noinline]] std::size_t send_together(std::span<const piece> from, std::size_t total,
                                              boost::system::error_code& failure) {
    std::array<std::byte, longest_gathered> together;  // filled as far as it is used
    std::byte* at = together.data();
    for (const piece& p : from) at = std::copy_n(p.data, p.bytes, at);
    return send_one({together.data(), total}, failure);
  }
  template <class Call>
  [[gnu::noinline]] std::size_t transfer(std::span<const piece> pieces, boost::system::error_code& failure,
                                         Call system_call) {
    std::array<iovec, most_pieces> parts;  // filled as far as it is used
    const std::size_t count = std::min(pieces.size(), most_pieces);
    for (std::size_t i = 0; i < count; ++i) parts[i] = {pieces[i].data, pieces[i].bytes};
    msghdr m{};
    m.msg_iov = parts.data();
    m.msg_iovlen = count;
    return attempt(failure, [&](int fd) { return system_call(fd, m); });
  }

  template <class Call>
  std::size_t attempt(boost::system::error_code& failure, Call system_call) {
    ssize_t n = 0;
    do {
      n = system_call(socket_.native_handle());
    } while (n < 0 && errno == EINTR);
    blocked_ = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    if (n < 0 && !blocked_) failure.assign(errno, boost::system::system_category());
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

  watched_socket socket_;
  bool blocked_ = false;
};

}  // namespace cohort::transport
