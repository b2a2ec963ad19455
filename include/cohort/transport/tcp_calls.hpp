// SPDX-License-Identifier: BSL-1.0
// Every asynchronous call of Boost.Asio that the transports make, once each, with one type of handler: Asio compiles
// its machinery for each pair of an object and a handler type, and a lambda is a type of its own.
#pragma once

#include <cohort/detail/frame_pool.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace cohort::detail {

/// Any callable that takes (error_code, bytes), (error_code) or nothing. Called at most once.
///
/// Cost: no allocation for callables of up to six pointers, and none where it waits, in a steady state
class io_handler {
 public:
  /// Where Asio keeps it while it waits. Its own store of memory serves only calls that are made in its handlers.
  using allocator_type = pool_allocator<std::byte>;
  [[nodiscard]] allocator_type get_allocator() const noexcept { return {}; }

  template <class Callable>
    requires(!std::is_same_v<std::decay_t<Callable>, io_handler>)
  io_handler(Callable&& callable) {  // NOLINT(google-explicit-constructor): stands for the callable
    using stored = std::decay_t<Callable>;
    if constexpr (sizeof(stored) <= room && alignof(stored) <= alignof(void*) &&
                  std::is_nothrow_move_constructible_v<stored>) {
      ::new (static_cast<void*>(bytes_)) stored(std::forward<Callable>(callable));
      act_ = &act_on<stored>;
    } else {
      ::new (static_cast<void*>(bytes_)) boxed<stored>{std::make_unique<stored>(std::forward<Callable>(callable))};
      act_ = &act_on<boxed<stored>>;
    }
  }
  io_handler(io_handler&& other) noexcept : act_(std::exchange(other.act_, nullptr)) {
    if (act_ != nullptr) act_(other.bytes_, bytes_, nullptr, 0);
  }
  io_handler& operator=(io_handler&&) = delete;
  ~io_handler() {
    if (act_ != nullptr) act_(bytes_, nullptr, nullptr, 0);
  }

  void operator()(const boost::system::error_code& code = {}, std::size_t bytes = 0) {
    act_(bytes_, nullptr, &code, bytes);
  }

 private:
  static constexpr std::size_t room = 6 * sizeof(void*);

  template <class Callable>
  struct boxed {
    std::unique_ptr<Callable> inside;
    void operator()(const boost::system::error_code& code, std::size_t bytes) { call(*inside, code, bytes); }
  };

  template <class Callable>
  static void call(Callable& callable, const boost::system::error_code& code, std::size_t bytes) {
    if constexpr (std::is_invocable_v<Callable&, const boost::system::error_code&, std::size_t>) {
      callable(code, bytes);
    } else if constexpr (std::is_invocable_v<Callable&, const boost::system::error_code&>) {
      callable(code);
    } else {
      callable();
    }
  }

  /// One function for everything that is done with a callable: calls it if there is a `code`, moves it to `to` if there
  /// is one, else destroys it.
  template <class Callable>
  static void act_on(void* at, void* to, const boost::system::error_code* code, std::size_t bytes) {
    auto& callable = *std::launder(static_cast<Callable*>(at));
    if (code != nullptr) return call(callable, *code, bytes);
    if (to != nullptr) ::new (to) Callable(std::move(callable));
    callable.~Callable();
  }

  using action = void (*)(void* at, void* to, const boost::system::error_code* code, std::size_t bytes);

  alignas(void*) std::byte bytes_[room];
  action act_ = nullptr;
};

using asio_socket = boost::asio::ip::tcp::socket;

/// Fills all of `into`.
inline void read_all(asio_socket& from, boost::asio::mutable_buffer into, io_handler then) {
  boost::asio::async_read(from, into, std::move(then));
}
inline void read_some(asio_socket& from, boost::asio::mutable_buffer into, io_handler then) {
  from.async_read_some(into, std::move(then));
}
/// Sends all bytes of both.
inline void write_all(asio_socket& to, boost::asio::const_buffer first, boost::asio::const_buffer second,
                      io_handler then) {
  boost::asio::async_write(to, std::array<boost::asio::const_buffer, 2>{first, second}, std::move(then));
}
inline void write_all(asio_socket& to, boost::asio::const_buffer bytes, io_handler then) {
  write_all(to, bytes, {}, std::move(then));
}
inline void connect_to(asio_socket& socket, const boost::asio::ip::tcp::endpoint& where, io_handler then) {
  socket.async_connect(where, std::move(then));
}
inline void accept_into(boost::asio::ip::tcp::acceptor& from, asio_socket& socket, io_handler then) {
  from.async_accept(socket, std::move(then));
}
inline void when_ready(asio_socket& socket, asio_socket::wait_type what, io_handler then) {
  socket.async_wait(what, std::move(then));
}
inline void when_readable(boost::asio::posix::stream_descriptor& descriptor, io_handler then) {
  descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read, std::move(then));
}
inline void when_expired(boost::asio::steady_timer& timer, io_handler then) { timer.async_wait(std::move(then)); }

/// To an io_context or a strand.
template <class Context>
void post_to(Context& where, io_handler then) {
  boost::asio::post(where, std::move(then));
}

}  // namespace cohort::detail
