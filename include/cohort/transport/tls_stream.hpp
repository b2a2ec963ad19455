// SPDX-License-Identifier: BSL-1.0
// A byte_stream over a TCP socket that is sealed by TLS: what tcp_stream.hpp is in plain text.
#pragma once

#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/tcp_watched_socket.hpp>
#include <cohort/transport/tls.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace cohort::transport {

class tls_stream final : public byte_stream {
 public:
  /// `read_again` is called when bytes have come that waiting for the socket would not tell of: somebody must call
  /// `receive` again, but not before `read_again` has returned.
  tls_stream(watched_socket::socket_type socket, std::unique_ptr<tls_session> session, std::function<void()> read_again)
      : socket_(std::move(socket)), session_(std::move(session)), read_again_(std::move(read_again)) {}

  [[nodiscard]] watched_socket& socket() noexcept { return socket_; }

  std::size_t send(std::span<const piece> from, boost::system::error_code& failure) override {
    return session_->send(from, failure);
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code& failure) override {
    const std::size_t got = session_->receive(into, failure);
    if (session_->holds_bytes()) read_again_();
    return got;
  }
  void close() noexcept override {
    if (!socket_.is_open()) return;
    session_->say_goodbye();
    socket_.close();
  }
  bool let_wait(bool may) noexcept override { return socket_.let_wait(may); }
  void acknowledge() noexcept override { socket_.acknowledge(); }
  [[nodiscard]] std::size_t eager_limit() const noexcept override { return std::size_t{256} << 10; }

 private:
  watched_socket socket_;
  std::unique_ptr<tls_session> session_;
  std::function<void()> read_again_;
};

}  // namespace cohort::transport
