// SPDX-License-Identifier: BSL-1.0
// What the tests of the TCP store share: clients that keep the rules, one that keeps none, and looks at this process.
#pragma once

#include <doctest/doctest.h>

#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "../support/free_port.hpp"
#include "store_contract.hpp"

namespace store_test {

using cohort::endpoint;
using cohort::errc;
using cohort::tcp_store;
using cohort::tcp_store_options;
using cohort::tcp_store_server;
using cohort::tcp_store_server_options;

inline tcp_store_options client_of(const tcp_store_server& server) {
  tcp_store_options options;
  options.where = server.where();
  return options;
}
inline tcp_store connect_to(const tcp_store_server& server) { return tcp_store(client_of(server), soon()); }

inline endpoint unused() { return {"127.0.0.1", static_cast<std::uint16_t>(harness::free_port())}; }

/// A client that keeps no rules: bytes out, bytes in.
class raw_client {
 public:
  explicit raw_client(const endpoint& where) : socket_(context_) {
    socket_.connect({boost::asio::ip::make_address(where.host), where.port});
  }
  void send(std::string_view bytes) {
    boost::system::error_code ignored;  // the server may have closed: that is what some tests are about
    boost::asio::write(socket_, boost::asio::buffer(bytes), ignored);
  }
  void say_hello() {
    send(cohort::detail::as_text(encode(cohort::transport::hello{})));
    const std::string reply = receive(cohort::transport::hello_size);
    REQUIRE(reply.size() == cohort::transport::hello_size);
  }
  void ask(cohort::detail::store_call call, std::uint32_t id, std::uint64_t patience_ms, std::string_view body) {
    cohort::detail::request_head head;
    head.call = call;
    head.id = id;
    head.patience_ms = patience_ms;
    head.size = static_cast<std::uint32_t>(body.size());
    std::string bytes;
    encode(head, bytes);
    bytes += body;
    send(bytes);
  }
  /// Up to `size` bytes; fewer when the server closes.
  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(boost::asio::read(socket_, boost::asio::buffer(bytes), ended_));
    return bytes;
  }
  [[nodiscard]] bool is_closed_by_server() { return receive(1).empty(); }
  /// Whether the server has closed without taking back what it had sent.
  [[nodiscard]] bool was_closed_in_order() const { return ended_ == boost::asio::error::eof; }

 private:
  boost::asio::io_context context_{};
  boost::asio::ip::tcp::socket socket_;
  boost::system::error_code ended_{};
};

inline std::string key_body(std::string_view key) {
  std::string bytes;
  cohort::detail::byte_writer(bytes).text(key);
  return bytes;
}

/// That another client is served, and promptly.
inline void check_service(const tcp_store_server& server) {
  const auto started = std::chrono::steady_clock::now();
  tcp_store client = connect_to(server);
  client.set("service", "on", soon());
  CHECK(client.get("service", soon()) == "on");
  CHECK(std::chrono::steady_clock::now() - started < 10s);  // not a speed: a client that is blocked waits for ever
}

[[nodiscard]] inline bool has_ipv6() {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket s(context);
  boost::system::error_code code;
  s.open(boost::asio::ip::tcp::v6(), code);
  if (!code) s.bind({boost::asio::ip::make_address("::1"), 0}, code);
  return !code;
}

/// Memory of this process that is in use, in bytes.
inline std::size_t resident() {
  std::size_t total = 0;
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> total >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

inline std::size_t open_descriptors() {
  std::size_t n = 0;
  DIR* const dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++n;
  ::closedir(dir);
  return n;
}

/// Waits for what another thread of this process does about a closed socket; there is nothing else to wait on.
template <class Condition>
[[nodiscard]] bool eventually(const Condition& condition) {
  for (int i = 0; i < 20000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

}  // namespace store_test
