// SPDX-License-Identifier: BSL-1.0
// Long messages between ranks of one host that their sender gives up in the very moment in which they are read, and a sender
// that stops while it writes: two connections of one process, whose streams stand for memory that both see.
#include "../support/host_stream.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/peer_connection.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace cohort;
using namespace cohort::transport;
using namespace std::chrono_literals;

using harness::direction;
using harness::host_stream;

struct end : peer_connection_owner {
  std::function<bool()> reads{};  // what happens while this end reads; false: it cannot
  std::shared_ptr<peer_connection> connection{};
  request* receive = nullptr;
  int sent = 0;
  int received = 0;
  std::string lost{};

  end(direction& out, direction& in, copying how)
      : connection(std::make_shared<peer_connection>(static_cast<peer_connection_owner&>(*this),
                                                     std::make_unique<host_stream>(out, in, reads), 1)) {
    connection->copy_by(how);
  }
  void on_message(peer_connection&, const envelope&) override {}
  void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) override {
    receive->header = header;
    c.grant(*receive, ticket);
  }
  void on_received(peer_connection&, request&) override { ++received; }
  void on_sent(request&) override { ++sent; }
  void on_goodbye(peer_connection&) override {}
  void on_lost(peer_connection& c, const boost::system::error_code&, const char* what) override {
    lost = what;
    c.close();
  }
  void on_stripe_lost(peer_connection&, const boost::system::error_code&, const char*) override {}
  [[nodiscard]] bool copies_with_senders() noexcept override { return true; }
  [[nodiscard]] std::chrono::nanoseconds longest_silence() const noexcept override { return 20ms; }
  void turn() {
    (void)connection->try_read();
    (void)connection->try_write();
    (void)connection->read_overdue(true);
    if (connection->has_shares()) (void)connection->copy_share();
  }
};

struct couple {
  direction there{};
  direction back{};
  end a;
  end b;
  std::vector<std::byte> from;
  std::vector<std::byte> to;
  std::array<piece, 2> out;
  std::array<piece, 2> in;
  request send{};
  request receive{};

  explicit couple(copying how)
      : a(there, back, how),
        b(back, there, how),
        from(200000, std::byte{1}),
        to(from.size()),
        out{{{from.data(), 100000}, {from.data() + 100000, 100000}}},
        in{{{to.data(), 100000}, {to.data() + 100000, 100000}}} {
    send.sending = true;
    send.header.bytes = receive.header.bytes = from.size();
    send.pieces = out.data();
    send.piece_count = out.size();
    receive.pieces = in.data();
    receive.piece_count = in.size();
    b.receive = &receive;
  }
};

constexpr std::array ways{copying::through_ring, copying::single_copy, copying::by_both};

}  // namespace

TEST_CASE("long messages between two ends of a process") {
  for (const copying how : ways) {
    couple both(how);
    both.a.connection->send(both.send);
    for (int i = 0; i < 20; ++i) {
      both.b.turn();
      both.a.turn();
    }
    CHECK(both.b.received == 1);
    CHECK(both.a.sent == 1);
    CHECK(both.to == both.from);
  }
}

TEST_CASE("a message that is given up while it is read is not received") {
  for (const copying how : ways) {
    for (const bool unmaps : {false, true}) {
      for (const bool used : {false, true}) {
        CAPTURE(static_cast<int>(how));
        CAPTURE(unmaps);
        CAPTURE(used);
        couple both(how);
        if (used)
          both.receive.piece_filled = [](const request&, std::size_t, std::size_t, const std::byte*,
                                         std::size_t) noexcept {};
        int reads = 0;
        both.b.reads = [&] {
          if (++reads == 1) both.a.connection->withdraw(both.send);
          return !unmaps;
        };
        both.a.connection->send(both.send);
        // The sender does something else: what it has offered is read.
        for (int i = 0; i < 20; ++i) both.b.turn();
        CHECK(both.b.received == 0);
        CHECK(both.b.lost.empty());
        CHECK(both.a.sent == 0);
        CHECK_FALSE(both.b.connection->waits_for_parts());
        both.b.connection->withdraw(both.receive);
        // The cursors and the rest are good for the next message.
        both.b.reads = nullptr;
        both.a.connection->send(both.send);
        for (int i = 0; i < 20; ++i) {
          both.b.turn();
          both.a.turn();
        }
        CHECK(both.b.received == 1);
        CHECK(both.a.sent == 1);
      }
    }
  }
}

TEST_CASE("a sender that stops while it writes a share is not waited for longer than it may be silent") {
  couple both(copying::by_both);
  both.a.connection->send(both.send);
  (void)both.b.connection->try_read();
  REQUIRE(both.b.connection->waits_for_parts());
  // It has taken the share on, and no more.
  std::atomic<std::uint64_t>& cursor = both.there.cursors[1].taken_on;
  const auto next = share_cursor(both.from.size()).from_end(cursor);
  REQUIRE(next.bytes > 0);
  cursor = next.word;
  both.b.connection->withdraw(both.receive);
  CHECK_FALSE(both.b.connection->waits_for_parts());
}
