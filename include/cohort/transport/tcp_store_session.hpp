// SPDX-License-Identifier: BSL-1.0
// One client of the TCP store as its server sees it: a connection, what has been read of its next request, and the
// replies that wait to be written. The rules are in tcp_store_service.hpp.
#pragma once

#include <cohort/store/wire.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_link.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace cohort::transport::tcp_detail {

using strand_type = boost::asio::strand<boost::asio::io_context::executor_type>;
// Each on the strand; their type is erased, so that these are the types that the transports compile for themselves.
using acceptor_type = boost::asio::ip::tcp::acceptor;
using timer_type = boost::asio::steady_timer;

/// A reply on its way: a head of its own, and a body that other clients' replies may share.
struct outgoing {
  std::string head{};
  std::shared_ptr<const std::string> body{};
  bool copied = false;  ///< nobody else has the body
  [[nodiscard]] std::size_t size() const noexcept { return head.size() + (body ? body->size() : 0); }
};

struct store_session {
  enum class phase : unsigned char {
    greeting,  ///< nothing is known of it; the hello timer runs
    accepted,  ///< it may ask
    refused,   ///< it has its reply and is given until the timer ends to read it
    closed,
  };

  store_session(const strand_type& strand, std::uint64_t number)
      : link(tcp_link::socket_type(strand)), hello_timer(strand), id(number) {}

  tcp_link link;
  timer_type hello_timer;
  std::uint64_t id;
  phase state = phase::greeting;

  hello_bytes greeting{};
  hello_bytes answer{};
  std::array<unsigned char, detail::request_head_size> head{};
  detail::request_head request{};
  std::string body{};
  bool reading = false;

  std::deque<outgoing> queue{};
  std::size_t queued_bytes = 0;
  std::size_t copied_bytes = 0;  ///< of them, those that are kept for this client alone
  bool writing = false;

  std::set<std::uint64_t> waits{};                ///< tickets of calls that are not answered yet
  std::size_t waited_keys = 0;                    ///< of all of them
  std::map<std::uint32_t, std::uint64_t> lent{};  ///< items it has not confirmed: the request's id and its ticket
};

/// A call that cannot be answered yet.
struct store_wait {
  store_wait(const strand_type& strand, std::shared_ptr<store_session> who, std::uint32_t request, std::size_t count)
      : timer(strand), session(std::move(who)), id(request), keys(count) {}
  timer_type timer;
  std::shared_ptr<store_session> session;
  std::uint32_t id;
  std::size_t keys;  ///< how many it waits for
};

}  // namespace cohort::transport::tcp_detail
