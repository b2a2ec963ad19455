// SPDX-License-Identifier: BSL-1.0
// One TCP connection with blocking calls that end at a deadline: an asynchronous operation on a reactor of its own,
// run until the operation or the time is over. What the client of the TCP store is made of.
#pragma once

#include <cohort/store.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_link.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <utility>

namespace cohort::transport {

/// A connection of one thread. A call that runs out of time closes it: half a message may be on its way.
///
/// Errors: an error code, boost::asio::error::timed_out for the deadline; nothing is thrown for the peer's doings
class timed_connection {
 public:
  timed_connection() : link_(tcp_link::socket_type(context_)) {}
  timed_connection(const timed_connection&) = delete;
  timed_connection& operator=(const timed_connection&) = delete;

  [[nodiscard]] boost::system::error_code connect(const tcp_endpoint& to, deadline until) {
    close();
    tcp_link::socket_type& socket = link_.socket();
    boost::system::error_code code;
    socket.open(to.protocol(), code);
    if (code) return code;
    close_on_exec(socket.native_handle());
    code = finish([&](detail::io_handler then) { detail::connect_to(socket, to, std::move(then)); }, until);
    if (code) return code;
    // A port of the range from which the system picks source ports can be connected to itself while nobody listens.
    if (socket.local_endpoint(code) == socket.remote_endpoint(code)) {
      close();
      return boost::asio::error::connection_refused;
    }
    boost::system::error_code ignored;
    socket.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
    return {};
  }

  /// Without a context there is nothing to do.
  [[nodiscard]] boost::system::error_code shake_hands(const tcp_link::context_pointer& tls, deadline until) {
    return finish([&](detail::io_handler then) { link_.shake_hands(tls, tls_side::client, std::move(then)); }, until);
  }

  [[nodiscard]] boost::system::error_code write(boost::asio::const_buffer bytes, deadline until) {
    return finish([&](detail::io_handler then) { link_.write_all(bytes, std::move(then)); }, until);
  }

  /// Fills all of `bytes`.
  [[nodiscard]] boost::system::error_code read(boost::asio::mutable_buffer bytes, deadline until) {
    return finish([&](detail::io_handler then) { link_.read_all(bytes, std::move(then)); }, until);
  }

  // For who goes on without deadlines of this class, on the same reactor.
  [[nodiscard]] boost::asio::io_context& context() noexcept { return context_; }
  [[nodiscard]] tcp_link& link() noexcept { return link_; }

  [[nodiscard]] bool is_open() const noexcept { return link_.is_open(); }
  void close() noexcept { link_.close(); }

 private:
  // The same handler for every call.
  [[nodiscard]] static detail::io_handler recorder(boost::system::error_code& result, bool& over) {
    return [&result, &over](const boost::system::error_code& code) {
      result = code;
      over = true;
    };
  }

  template <class Start>
  boost::system::error_code finish(const Start& start, deadline until) {
    boost::system::error_code result;
    bool over = false;
    start(recorder(result, over));
    context_.restart();
    context_.poll();  // run_until does nothing at all once the time is over
    if (!over) context_.run_until(until);
    if (!over) {
      close();
      context_.restart();
      context_.run();
      result = boost::asio::error::timed_out;
    }
    if (result) close();
    return result;
  }

  boost::asio::io_context context_{1};
  tcp_link link_;
};

}  // namespace cohort::transport
