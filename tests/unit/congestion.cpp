// SPDX-License-Identifier: BSL-1.0
// The congestion control of a connection is chosen before there is one: what BBR has begun to pace stays paced.
#include <cohort/transport/tcp_congestion.hpp>

#include "../support/congestion.hpp"

#include <doctest/doctest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <string>

using boost::asio::ip::tcp;
using cohort::transport::congestion_choice;
using cohort::transport::congestion_control_of;

namespace {

/// Two ranks of one host, that have made the same choice.
struct two_ends {
  explicit two_ends(const std::string& named) : choice(named) {
    choice.before_accepting(acceptor);
    dialed.open(tcp::v4());
    const auto here = acceptor.local_endpoint();
    choice.before_connecting(dialed, here.address(), here.address());
    dialed.connect(here);
    acceptor.accept(accepted);
  }
  [[nodiscard]] std::string of_dialed() { return congestion_control_of(dialed.native_handle()); }
  [[nodiscard]] std::string of_accepted() { return congestion_control_of(accepted.native_handle()); }

  boost::asio::io_context io{};
  tcp::acceptor acceptor{io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
  tcp::socket dialed{io};
  tcp::socket accepted{io};
  congestion_choice choice;
};

void expect_everywhere(const std::string& named, const std::string& wanted) {
  two_ends ends(named);
  CHECK(ends.of_dialed() == wanted);
  CHECK(ends.of_accepted() == wanted);
  ends.choice.after_accepting(ends.accepted);
  CHECK(ends.of_accepted() == wanted);
}

}  // namespace

TEST_CASE("congestion: both ends of a connection on one host have Reno from its first segment on") {
  expect_everywhere("", "reno");
}

TEST_CASE("congestion: what was asked for is there from the first segment on, and stays") {
  if (!harness::has_congestion_control("cubic")) {
    MESSAGE("skipped: this host has no cubic, or does not let this user choose it");
    return;
  }
  expect_everywhere("cubic", "cubic");
}

TEST_CASE("congestion: a socket that is about to connect to another host is as its own host has it") {
  boost::asio::io_context io;
  tcp::socket socket(io, tcp::v4());
  const std::string usual = harness::usual_congestion_control();
  congestion_choice("").before_connecting(socket, boost::asio::ip::make_address("192.0.2.1"),
                                          boost::asio::ip::make_address("192.0.2.2"));
  CHECK(congestion_control_of(socket.native_handle()) == usual);
  congestion_choice("").before_connecting(socket, boost::asio::ip::make_address("192.0.2.2"),
                                          boost::asio::ip::make_address("192.0.2.2"));
  CHECK(congestion_control_of(socket.native_handle()) == "reno");
}
