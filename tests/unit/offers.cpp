// SPDX-License-Identifier: BSL-1.0
// Offers of long messages, which their receiver copies out of the sender's memory: a stream that is full takes an offer in
// parts, and between two of them the receiver may destroy the communicator that it is for.
#include "../support/host_stream.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/peer_connection.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace cohort::transport;

constexpr std::uint64_t kept = 5;  // communicators
constexpr std::uint64_t gone = 6;

using harness::direction;
using harness::host_stream;

/// Keeps what is announced, but for the communicator that it has destroyed.
struct end : peer_connection_owner {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> announced{};  // communicators and tickets
  bool has_destroyed = false;
  int received = 0;
  std::string lost{};
  std::function<bool()> reads{};
  std::shared_ptr<peer_connection> connection;

  end(direction& out, direction& in)
      : connection(std::make_shared<peer_connection>(static_cast<peer_connection_owner&>(*this),
                                                     std::make_unique<host_stream>(out, in, reads), 1)) {}

  void on_message(peer_connection&, const envelope&) override { FAIL("no message is that short"); }
  void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) override {
    announced.emplace_back(header.context, ticket);
    if (has_destroyed && header.context == gone) c.forget(gone);
  }
  void on_received(peer_connection&, request&) override { ++received; }
  void on_sent(request&) override {}
  void on_goodbye(peer_connection&) override {}
  void on_lost(peer_connection& c, const boost::system::error_code&, const char* what) override {
    lost = what;
    c.close();
  }
  void on_stripe_lost(peer_connection&, const boost::system::error_code&, const char*) override {}
};

/// A long message in so many pieces.
struct message {
  std::vector<std::byte> data;
  std::vector<piece> pieces{};
  request r{};

  message(std::uint64_t context, std::size_t in_pieces, std::byte value) : data(10000 * in_pieces, value) {
    for (std::size_t i = 0; i < in_pieces; ++i) pieces.push_back({data.data() + 10000 * i, 10000});
    r.sending = true;
    r.header.context = context;
    r.header.bytes = data.size();
    r.pieces = pieces.data();
    r.piece_count = pieces.size();
  }
};

/// The offer for the communicator that is destroyed is seen as far as `cut`, and then the rest of it. Result: its length.
std::size_t destroy_within(std::size_t pieces, std::size_t cut, bool other_in_front) {
  CAPTURE(pieces);
  CAPTURE(cut);
  CAPTURE(other_in_front);
  direction there;
  direction back;
  end sender(there, back);
  end receiver(back, there);
  message in_front(kept, pieces, std::byte{1});
  message in_vain(gone, pieces, std::byte{2});
  message behind(kept, pieces, std::byte{3});
  if (other_in_front) sender.connection->send(in_front.r);
  const std::size_t first = there.bytes.size();
  sender.connection->send(in_vain.r);
  const std::size_t length = there.bytes.size() - first;
  sender.connection->send(behind.r);

  there.hidden = there.bytes.size() - (first + std::min(cut, length));
  receiver.connection->try_read();
  receiver.has_destroyed = true;
  receiver.connection->forget(gone);
  there.hidden = 0;
  receiver.connection->try_read();
  REQUIRE(receiver.lost.empty());
  REQUIRE(receiver.announced.size() == (other_in_front ? 3U : 2U));

  // The others are read out of their places; of the one that was forgotten none is known any more.
  for (const auto& [context, ticket] : receiver.announced) {
    message in(context, 1, std::byte{0});
    in.data.resize(behind.data.size());
    in.pieces[0] = {in.data.data(), in.data.size()};
    in.r.sending = false;
    in.r.pieces = in.pieces.data();
    in.r.header.bytes = in.data.size();
    const int before = receiver.received;
    receiver.connection->grant(in.r, ticket);
    CHECK(receiver.received - before == (context == kept ? 1 : 0));
    const bool is_last = ticket == receiver.announced.back().second;
    if (context == kept) CHECK(in.data == (is_last ? behind : in_front).data);
    if (context == gone) receiver.connection->withdraw(in.r);
  }
  return length;
}

}  // namespace

TEST_CASE("a communicator that is destroyed while an offer for it arrives leaves the offers for others whole") {
  for (const std::size_t pieces : {std::size_t{1}, std::size_t{3}}) {
    for (const bool other_in_front : {false, true}) {
      const std::size_t length = destroy_within(pieces, 0, other_in_front);
      REQUIRE(length == frame::size + 16 * pieces);
      for (std::size_t cut = 1; cut <= length; ++cut) destroy_within(pieces, cut, other_in_front);
    }
  }
}
