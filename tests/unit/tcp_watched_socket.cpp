// SPDX-License-Identifier: BSL-1.0
// A socket that leaves the reactor and comes back: its bytes do not care, and whoever waits there is told of all that is.
#include <cohort/transport/tcp_watched_socket.hpp>

#include <doctest/doctest.h>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <vector>

using boost::asio::ip::tcp;
using cohort::transport::watched_socket;

namespace {

struct two_ends {
  two_ends() {
    tcp::acceptor acceptor(io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    other.connect(acceptor.local_endpoint());
    mine = std::make_unique<watched_socket>(acceptor.accept());
  }
  void wait(tcp::socket::wait_type what = tcp::socket::wait_read) {
    mine->when_ready(what, [this](const boost::system::error_code& code) { told.push_back(code); });
  }
  /// Until somebody is told something, if that happens soon.
  void run() {
    io.restart();
    io.run_one_for(std::chrono::seconds{10});
  }
  void send(char c) { REQUIRE(::send(other.native_handle(), &c, 1, 0) == 1); }
  [[nodiscard]] char receive() const {
    char c = '\0';
    const ssize_t n = ::recv(mine->native_handle(), &c, 1, 0);
    return n == 1 ? c : '\0';
  }

  boost::asio::io_context io{};
  tcp::socket other{io};
  std::unique_ptr<watched_socket> mine{};
  std::vector<boost::system::error_code> told{};
};

}  // namespace

TEST_CASE("watched socket: out of the reactor it is read and written all the same") {
  two_ends ends;
  const int handle = ends.mine->native_handle();
  CHECK(ends.mine->watched());
  for (const char c : {'a', 'b', 'c'}) {
    ends.mine->unwatch();
    ends.mine->unwatch();
    CHECK_FALSE(ends.mine->watched());
    CHECK(ends.mine->is_open());
    CHECK(ends.mine->native_handle() == handle);
    ends.send(c);
    CHECK(ends.receive() == c);
    boost::system::error_code failure;
    ends.mine->watch(failure);
    ends.mine->watch(failure);
    CHECK_FALSE(failure);
    CHECK(ends.mine->watched());
  }
}

TEST_CASE("watched socket: what has come while nobody watched is told") {
  two_ends ends;
  for (const char c : {'a', 'b', 'c'}) {
    ends.mine->unwatch();
    ends.send(c);
    boost::system::error_code failure;
    ends.mine->watch(failure);
    REQUIRE_FALSE(failure);
    ends.wait();
    ends.run();
    REQUIRE(ends.told.size() == 1);
    CHECK_FALSE(ends.told.front());
    ends.told.clear();
    CHECK(ends.receive() == c);
  }
}

TEST_CASE("watched socket: whoever waits while it leaves is told that this was cancelled") {
  two_ends ends;
  ends.wait();
  ends.mine->unwatch();
  ends.run();
  REQUIRE(ends.told.size() == 1);
  CHECK(ends.told.front() == boost::asio::error::operation_aborted);
}

TEST_CASE("watched socket: closed in either state, the peer finds the end, and nothing can be watched") {
  for (const bool watched : {true, false}) {
    two_ends ends;
    if (!watched) ends.mine->unwatch();
    ends.mine->close();
    ends.mine->close();
    CHECK_FALSE(ends.mine->is_open());
    boost::system::error_code failure;
    ends.mine->watch(failure);
    CHECK_FALSE(ends.mine->watched());
    char c = '\0';
    CHECK(::recv(ends.other.native_handle(), &c, 1, 0) == 0);
  }
}

TEST_CASE("watched socket: destroyed out of the reactor, it is closed") {
  two_ends ends;
  ends.mine->unwatch();
  ends.mine.reset();
  char c = '\0';
  CHECK(::recv(ends.other.native_handle(), &c, 1, 0) == 0);
}
