// SPDX-License-Identifier: BSL-1.0
// A TCP connection that may be sealed by TLS: whoever reads and writes whole buffers does so through it and need not know.
// Under the greeting of tcp_handshake.hpp, the store, and the heartbeats; between two ranks it becomes a byte_stream.
#pragma once

#include <cohort/transport/piece.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tls.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace cohort::transport {

/// One read and one write may be under way at a time, and none while it is moved.
///
/// Lifetime: each handler keeps the link alive, as it would a socket
class tcp_link {
 public:
  using socket_type = boost::asio::ip::tcp::socket;
  using context_pointer = std::shared_ptr<const tls_context>;

  explicit tcp_link(socket_type socket) noexcept : socket_(std::move(socket)) {}

  [[nodiscard]] socket_type& socket() noexcept { return socket_; }
  /// Who was there when hands were shaken, wherever it is by now.
  [[nodiscard]] const boost::asio::ip::tcp::endpoint& peer() const noexcept { return peer_; }
  [[nodiscard]] bool is_open() const noexcept { return socket_.is_open(); }

  /// Everything after it is sealed. Without a context there is nothing to do, and `then` is called at once.
  void shake_hands(const context_pointer& with, tls_side side, detail::io_handler then) {
    boost::system::error_code gone;
    peer_ = socket_.remote_endpoint(gone);
    if (with == nullptr) return then();
    try {
      session_ = with->open(socket_.native_handle(), side);
    } catch (const std::bad_alloc&) {
      return then(boost::asio::error::no_memory);
    }
    go_on_shaking(std::move(then));
  }

  /// Fills all of `into`.
  void read_all(boost::asio::mutable_buffer into, detail::io_handler then) {
    if (!session_) return detail::read_all(socket_, into, std::move(then));
    go_on_reading({{static_cast<std::byte*>(into.data()), into.size()}, {}, 0, std::move(then)}, false);
  }
  /// Sends all bytes of both.
  void write_all(boost::asio::const_buffer first, boost::asio::const_buffer second, detail::io_handler then) {
    if (!session_) return detail::write_all(socket_, first, second, std::move(then));
    go_on_writing({as_piece(first), as_piece(second), 0, std::move(then)}, false);
  }
  void write_all(boost::asio::const_buffer bytes, detail::io_handler then) { write_all(bytes, {}, std::move(then)); }

  /// A peer without TLS can be told so only without it.
  void give_up_tls() noexcept { session_.reset(); }
  /// Sends nothing more, and reads and forgets until the peer has closed: who closes with unread bytes takes back what it
  /// has sent last.
  void see_off(detail::io_handler then) {
    if (const auto mine = std::exchange(session_, nullptr)) mine->say_goodbye();
    boost::system::error_code ignored;
    socket_.shutdown(socket_type::shutdown_send, ignored);
    forget_all(std::move(then));
  }
  void close() noexcept {
    if (const auto mine = std::exchange(session_, nullptr)) mine->say_goodbye();
    boost::system::error_code ignored;
    if (!socket_.is_open()) return;
    socket_.shutdown(socket_type::shutdown_send, ignored);
    socket_.close(ignored);
  }

  /// For a byte_stream, which goes on by itself; null where nothing is sealed.
  [[nodiscard]] std::unique_ptr<tls_session> take_session() noexcept { return std::move(session_); }

 private:
  struct transfer {
    piece first{};
    piece second{};
    std::size_t done = 0;
    detail::io_handler then;

    [[nodiscard]] std::array<piece, 2> rest() const noexcept {
      const std::size_t of_first = std::min(done, first.bytes);
      const std::size_t of_second = done - of_first;
      return {piece{first.data + of_first, first.bytes - of_first},
              piece{second.data + of_second, second.bytes - of_second}};
    }
    [[nodiscard]] bool complete() const noexcept { return done == first.bytes + second.bytes; }
  };

  // A send never writes through it.
  [[nodiscard]] static piece as_piece(boost::asio::const_buffer b) noexcept {
    return {static_cast<std::byte*>(const_cast<void*>(b.data())), b.size()};
  }

  void go_on_shaking(detail::io_handler then) {
    if (!session_) return then(boost::asio::error::operation_aborted);  // closed meanwhile
    boost::system::error_code failure;
    const tls_session::need need = session_->shake_hands(failure);
    if (need == tls_session::need::nothing) return then(failure);
    detail::when_ready(socket_, need == tls_session::need::readable ? socket_type::wait_read : socket_type::wait_write,
                       [this, then = std::move(then)](const boost::system::error_code& code) mutable {
                         if (code) return then(code);
                         go_on_shaking(std::move(then));
                       });
  }

  void go_on_reading(transfer t, bool in_handler) {
    go_on(std::move(t), in_handler, socket_type::wait_read, &tls_session::receive, &tcp_link::go_on_reading);
  }
  void go_on_writing(transfer t, bool in_handler) {
    go_on(std::move(t), in_handler, socket_type::wait_write, &tls_session::send, &tcp_link::go_on_writing);
  }

  template <class Move, class Again>
  void go_on(transfer t, bool in_handler, socket_type::wait_type wait, Move move, Again again) {
    // Closed meanwhile.
    if (!session_) return finish(std::move(t), boost::asio::error::operation_aborted, in_handler);
    boost::system::error_code failure;
    for (std::size_t n = 1; n > 0 && !failure && !t.complete();) {
      const std::array<piece, 2> rest = t.rest();
      n = (*session_.*move)(rest, failure);
      t.done += n;
    }
    if (failure || t.complete()) return finish(std::move(t), failure, in_handler);
    detail::when_ready(socket_, wait, [this, again, t = std::move(t)](const boost::system::error_code& code) mutable {
      if (code) return t.then(code, t.done);
      (this->*again)(std::move(t), true);
    });
  }

  /// Never from within the call that began it.
  void finish(transfer t, const boost::system::error_code& failure, bool in_handler) {
    if (in_handler) return t.then(failure, t.done);
    const boost::asio::any_io_executor where = socket_.get_executor();
    detail::post_to(where, [t = std::move(t), failure]() mutable { t.then(failure, t.done); });
  }

  void forget_all(detail::io_handler then) {
    detail::read_some(socket_, boost::asio::buffer(forgotten_),
                      [this, then = std::move(then)](const boost::system::error_code& code) mutable {
                        if (code) return then(code);
                        forget_all(std::move(then));
                      });
  }

  socket_type socket_;
  boost::asio::ip::tcp::endpoint peer_{};
  std::unique_ptr<tls_session> session_{};
  std::array<char, 256> forgotten_{};
};

}  // namespace cohort::transport
