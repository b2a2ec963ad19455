// SPDX-License-Identifier: BSL-1.0
// Names and addresses of hosts as they are handed to sockets.
#include <doctest/doctest.h>

#include <cohort/transport/tcp_address.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <string>

namespace {

namespace transport = cohort::transport;

cohort::deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

}  // namespace

TEST_CASE("tcp_address: an IPv4 address in the clothes of IPv6 is one of IPv4, and can be listened on") {
  for (const char* text : {"127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1"}) {
    INFO(text);
    const auto found = transport::resolve(text, 0, soon());
    REQUIRE(found.size() == 1);
    CHECK(found.front().address().to_string() == "127.0.0.1");
    CHECK(cohort::is_loopback_address(text));
    boost::asio::io_context io;
    boost::asio::ip::tcp::acceptor acceptor(io);
    CHECK(transport::listen_on(acceptor, found.front()) != 0);
  }
  CHECK(transport::resolve("::1", 5, soon()).front().address().is_v6());
}
