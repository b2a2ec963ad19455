// SPDX-License-Identifier: BSL-1.0
// Long messages over several streams, without sockets: two stripe_sets over streams that take and give as little as they
// please, and one end of a connection whose peer may send anything. stripes.cpp has the arithmetic.
#include "../support/between.hpp"
#include "../support/memory_stream.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/peer_connection.hpp>
#include <cohort/transport/stripe_set.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace cohort;
using namespace cohort::transport;

using harness::between;
using harness::generator;
using harness::memory_stream;
using harness::message;
using harness::pipe;
/// One end; remembers what it was told.
struct end : stripe_set_owner {
  stripe_set set{*this};
  std::vector<const request*> sent{};
  std::vector<const request*> received{};
  std::string lost{};
  int losses = 0;
  int quiet = 0;

  void on_striped_send(request& r) override { sent.push_back(&r); }
  void on_striped_receive(request& r) override { received.push_back(&r); }
  void on_stripe_lost(const boost::system::error_code&, const char* what) override {
    lost = what;
    ++losses;
    set.close();
  }
  void on_stripes_quiet() override { ++quiet; }
};

/// Two ends and the streams between them.
struct couple {
  generator& random;
  end a{};
  end b{};
  std::deque<pipe> pipes{};

  explicit couple(generator& g) : random(g) {}
  void open(std::size_t stream) {
    pipe& there = pipes.emplace_back();
    pipe& back = pipes.emplace_back();
    there.room = between(random, 1, 100000);
    back.room = between(random, 1, 100000);
    a.set.open(stream, std::make_unique<memory_stream>(there, back, random));
    b.set.open(stream, std::make_unique<memory_stream>(back, there, random));
  }
  void turn() {
    const std::size_t streams = std::max(a.set.size(), b.set.size());
    const std::size_t i = between(random, 0, streams - 1);
    stripe_set& one = between(random, 0, 1) == 0 ? a.set : b.set;
    if (!one.is_open(i)) return;
    if (between(random, 0, 1) == 0) {
      one.try_read(i);
    } else if (one.has_output(i)) {
      one.try_write(i);
    }
  }
};

/// What a peer might send, to an end that waits for `bytes` under ticket 7.
std::string answer_to(std::initializer_list<chunk> headers, std::size_t bytes, bool payload = true) {
  generator random(1);
  pipe there;
  pipe back;
  std::vector<std::byte> memory(bytes);
  const piece whole{memory.data(), bytes};
  request r;
  r.header.bytes = bytes;
  r.pieces = &whole;
  r.piece_count = 1;
  end e;
  e.set.open(0, std::make_unique<memory_stream>(back, there, random));
  e.set.expect(r, 7);
  for (const chunk& c : headers) {
    const auto header = c.encode();
    const auto* const from = reinterpret_cast<const std::byte*>(header.data());
    there.bytes.insert(there.bytes.end(), from, from + header.size());
    if (payload)
      there.bytes.insert(there.bytes.end(), static_cast<std::size_t>(std::min<std::uint64_t>(c.bytes, 1 << 20)),
                         std::byte{1});
  }
  for (int i = 0; i < 1000 && e.lost.empty() && e.received.empty(); ++i) e.set.try_read(0);
  CHECK(e.losses <= 1);
  return e.received.empty() ? e.lost : "received";
}

/// One end of a whole connection, whose peer is the test: bytes on the first stream and on one stripe.
struct one_end : peer_connection_owner {
  generator random{11};
  pipe to_peer{};
  pipe from_peer{};
  pipe stripe_to_peer{};
  pipe stripe_from_peer{};
  std::shared_ptr<peer_connection> connection = std::make_shared<peer_connection>(
      static_cast<peer_connection_owner&>(*this), std::make_unique<memory_stream>(to_peer, from_peer, random), 1);
  request* waiting = nullptr;  // for whatever is announced
  std::string events{};
  bool takes_notices = true;

  one_end() {
    to_peer.room = stripe_to_peer.room = std::size_t{1} << 24;
    connection->stripes().open(0, std::make_unique<memory_stream>(stripe_to_peer, stripe_from_peer, random));
  }
  void on_message(peer_connection&, const envelope&) override { events += "message "; }
  void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) override {
    waiting->header = header;
    c.grant(*waiting, ticket);
  }
  void on_received(peer_connection&, request&) override { events += "received "; }
  void on_sent(request&) override { events += "sent "; }
  void on_goodbye(peer_connection&) override { events += "goodbye "; }
  bool on_notice(peer_connection&, std::span<const std::byte> said) override {
    if (takes_notices) events += "notice of " + std::to_string(said.size()) + " ";
    return takes_notices;
  }
  void on_lost(peer_connection& c, const boost::system::error_code&, const char* what) override {
    events += std::string("lost while ") + what;
    c.close();
  }
  void on_stripe_lost(peer_connection&, const boost::system::error_code&, const char* what) override {
    events += std::string("stripe lost while ") + what;
  }

  template <class Bytes>
  static void say(pipe& to, const Bytes& bytes) {
    const auto* const from = reinterpret_cast<const std::byte*>(bytes.data());
    to.bytes.insert(to.bytes.end(), from, from + bytes.size());
  }
  void say(frame_kind kind, std::uint64_t ticket, std::uint64_t bytes) {
    frame f;
    f.kind = kind;
    f.ticket = ticket;
    f.header.bytes = bytes;
    say(from_peer, f.encode());
  }
  void turn() {
    for (int i = 0; i < 200 && connection->open(); ++i) {
      connection->try_read();
      if (connection->open() && connection->stripes().is_open(0)) connection->stripes().try_read(0);
      if (connection->open()) connection->try_write();
    }
  }
};

constexpr std::uint64_t striped = std::uint64_t{1} << 63;

}  // namespace

TEST_CASE("stripes: messages both ways over streams that take and give as little as they please") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    generator random(seed);
    couple c(random);
    const std::size_t streams = between(random, 1, 8);
    std::vector<std::unique_ptr<message>> forth;
    std::vector<std::unique_ptr<message>> back;
    const auto start = [&](end& from, end& to, std::vector<std::unique_ptr<message>>& list) {
      const bool used_early = between(random, 0, 1) == 0;
      const std::size_t bytes = (used_early ? 7U : 1U) * between(random, 1, 400000);
      list.push_back(std::make_unique<message>(random, bytes, used_early));
      message& m = *list.back();
      const std::uint64_t unit = stripe_set::unit_of(m.receive);
      REQUIRE(unit > 0);
      to.set.expect(m.receive, list.size());
      from.set.send(m.send, list.size(), unit);
    };
    const std::size_t early = between(random, 0, 2);
    for (std::size_t i = 0; i < early; ++i) start(c.a, c.b, forth);  // before there is any stream
    for (std::size_t i = 0; i < streams; ++i) {
      c.open(i);
      if (i < 3) start(i % 2 == 0 ? c.b : c.a, i % 2 == 0 ? c.a : c.b, i % 2 == 0 ? back : forth);
      for (int t = 0; t < 20; ++t) c.turn();
    }
    for (int t = 0; t < 400000 && (c.b.received.size() < forth.size() || c.a.received.size() < back.size()); ++t)
      c.turn();
    REQUIRE(c.b.received.size() == forth.size());
    REQUIRE(c.a.received.size() == back.size());
    REQUIRE(c.a.sent.size() == forth.size());
    REQUIRE(c.b.sent.size() == back.size());
    for (const auto& m : forth) REQUIRE(m->arrived());
    for (const auto& m : back) REQUIRE(m->arrived());
    REQUIRE_FALSE(c.a.set.busy());
    REQUIRE_FALSE(c.b.set.busy());

    // Both leave in good order: nothing is lost, whoever closes first.
    c.a.set.say_goodbye();
    c.b.set.say_goodbye();
    for (int t = 0; t < 5000; ++t) c.turn();
    c.a.set.close();
    for (int t = 0; t < 5000; ++t) c.turn();
    CHECK(c.a.losses == 0);
    CHECK(c.b.losses == 0);
  }
}

TEST_CASE("stripes: what is withdrawn in flight touches no memory any more, and others arrive whole") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    generator random(seed);
    couple c(random);
    const std::size_t streams = between(random, 1, 4);
    for (std::size_t i = 0; i < streams; ++i) c.open(i);
    const bool used_early = seed % 2 == 0;
    const std::size_t bytes = 7 * between(random, 50000, 100000);
    auto gone = std::make_unique<message>(random, bytes, used_early);
    message stays(random, bytes, used_early);
    c.b.set.expect(gone->receive, 1);
    c.b.set.expect(stays.receive, 2);
    c.a.set.send(gone->send, 1, stripe_set::unit_of(gone->receive));
    c.a.set.send(stays.send, 2, stripe_set::unit_of(stays.receive));
    const std::uint64_t until = between(random, 0, 200);
    for (std::uint64_t t = 0; t < until; ++t) c.turn();
    if (!c.b.received.empty()) continue;
    if (seed % 3 != 0 && c.a.sent.empty()) c.a.set.withdraw(gone->send);
    c.b.set.withdraw(gone->receive);
    const bool sender_stays = seed % 3 == 0;
    if (sender_stays) {
      gone->receive = request{};  // its memory is another's now
      std::vector<std::byte>().swap(gone->to);
      std::vector<std::byte>().swap(gone->used);
      std::vector<std::byte>().swap(gone->scratch);
    } else {
      gone.reset();
    }
    for (int t = 0; t < 400000 && c.b.received.empty(); ++t) c.turn();
    REQUIRE(c.b.received.size() == 1);
    CHECK(stays.arrived());
    CHECK(c.b.losses == 0);
    CHECK(c.a.losses == 0);
    CHECK_FALSE(c.b.set.awaits());
  }
}

TEST_CASE("stripes: what a peer may not send is refused, once and in words") {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  constexpr std::uint64_t n = longest_chunk;
  CHECK(answer_to({{7, 0, n}, {7, n, n}, {7, 2 * n, n}, {7, 3 * n, n}}, bytes) == "received");
  CHECK(answer_to({{7, 3 * n, n}, {7, n, n}, {7, 0, n}, {7, 2 * n, n}}, bytes) == "received");
  const std::string not_asked_for = "reading a chunk of a message that was not asked for";
  const std::string no_part = "reading a chunk that is no part of its message, or came before";
  CHECK(answer_to({{8, 0, n}}, bytes) == not_asked_for);
  CHECK(answer_to({{0, 0, n}}, bytes) == not_asked_for);
  CHECK(answer_to({{7, 0, n}, {7, 0, n}}, bytes) == no_part);
  CHECK(answer_to({{7, 0, n}, {7, n / 2, n}}, bytes) == no_part);
  CHECK(answer_to({{7, bytes, n}}, bytes, false) == no_part);
  CHECK(answer_to({{7, bytes - 8, 16}}, bytes, false) == no_part);
  CHECK(answer_to({{7, 0, bytes + 1}}, bytes, false) == no_part);
  CHECK(answer_to({{7, 0, std::uint64_t(-1)}}, bytes, false) == no_part);
  CHECK(answer_to({{7, std::uint64_t(-1), n}}, bytes, false) == no_part);
  CHECK(answer_to({{7, 0, 100}}, bytes) == no_part);
  CHECK(answer_to({{7, 0, 0}}, bytes) == no_part);
  CHECK(answer_to({chunk{}, {7, 0, n}}, bytes) == "reading a stripe that had ended");
}

TEST_CASE("stripes: a stream that ends without a goodbye is a loss, and so is one that a message still needs") {
  generator random(5);
  {
    couple c(random);
    c.open(0);
    c.open(1);
    c.pipes[2].closed = true;  // to b, over stream 1
    c.b.set.try_read(1);
    CHECK(c.b.lost == "receiving over one of its stripes");
    CHECK(c.b.losses == 1);
    CHECK_FALSE(c.b.set.is_open(0));
  }
  {
    couple c(random);
    c.open(0);
    message m(random, 2000000, false);
    c.b.set.expect(m.receive, 1);
    c.a.set.say_goodbye();
    c.a.set.close();
    for (int t = 0; t < 1000 && c.b.losses == 0; ++t) c.turn();
    CHECK(c.b.losses == 1);
    CHECK(c.b.received.empty());
  }
}

TEST_CASE("connection: what an owner tells another's stays behind the messages before it") {
  one_end e;
  one_end other;
  std::vector<std::byte> said(peer_connection::longest_notice, std::byte{7});
  const piece parts[] = {{said.data(), 1000}, {said.data() + 1000, said.size() - 1000}};
  request r;  // of no bytes
  e.connection->send(r);
  e.connection->tell(parts);
  e.connection->tell({parts, 1});
  e.connection->say_goodbye();
  e.turn();
  one_end::say(other.from_peer, std::vector(e.to_peer.bytes.begin(), e.to_peer.bytes.end()));
  other.turn();
  CHECK(e.events == "sent ");
  CHECK(other.events == "message notice of 4096 notice of 1000 goodbye ");
}

TEST_CASE("connection: a notice of an impossible length, or to one who takes none, ends it") {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{4097}, std::uint64_t{1} << 40}) {
    one_end e;
    e.say(frame_kind::notice, 0, bytes);
    e.turn();
    CHECK(e.events == "lost while reading a notice of a length that none has");
  }
  one_end e;
  e.takes_notices = false;
  e.say(frame_kind::notice, 0, 8);
  one_end::say(e.from_peer, std::vector<std::byte>(8));
  e.turn();
  CHECK(e.events == "lost while reading a notice, which nobody can have sent");
  CHECK_FALSE(e.connection->open());
}

TEST_CASE("stripes: a peer that has left may end its first stream before the message that it left is here") {
  constexpr std::size_t bytes = std::size_t{2} * longest_chunk;
  for (const bool all_of_it : {true, false}) {
    one_end e;
    std::vector<std::byte> memory(bytes);
    const piece whole{memory.data(), bytes};
    request r;
    r.pieces = &whole;
    r.piece_count = 1;
    e.waiting = &r;
    e.say(frame_kind::announce, striped | 1, bytes);
    e.say(frame_kind::goodbye, 0, 0);
    e.from_peer.closed = true;
    e.turn();
    CHECK(e.events == "goodbye ");
    CHECK(e.connection->over());
    CHECK(e.connection->open());
    const std::vector<std::byte> payload(longest_chunk, std::byte{5});
    one_end::say(e.stripe_from_peer, chunk{striped | 1, longest_chunk, longest_chunk}.encode());
    one_end::say(e.stripe_from_peer, payload);
    if (all_of_it) {
      one_end::say(e.stripe_from_peer, chunk{striped | 1, 0, longest_chunk}.encode());
      one_end::say(e.stripe_from_peer, payload);
    }
    one_end::say(e.stripe_from_peer, chunk{}.encode());
    e.stripe_from_peer.closed = true;
    e.turn();
    if (all_of_it) {
      CHECK(e.events == "goodbye received lost while receiving");
      CHECK(memory == std::vector<std::byte>(bytes, std::byte{5}));
    } else {
      CHECK(e.events == "goodbye stripe lost while receiving over one of its stripes");
    }
  }
}

TEST_CASE("stripes: a grant that cannot be followed is refused, and one without chunks is for the first stream") {
  constexpr std::size_t bytes = (std::size_t{1} << 20) + 8;
  for (const std::uint64_t unit : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{7}, std::uint64_t{bytes}}) {
    CAPTURE(unit);
    one_end e;
    std::vector<std::byte> memory(bytes);
    const piece whole{memory.data(), bytes};
    request r;
    r.sending = true;
    r.header.bytes = bytes;
    r.pieces = &whole;
    r.piece_count = 1;
    e.connection->use_stripes(1);
    e.connection->send(r);
    CHECK((r.ticket & striped) != 0);
    e.say(frame_kind::grant, r.ticket, unit);
    e.turn();
    const bool refused = unit == 7 || unit == bytes;
    CHECK(e.events == (refused ? "lost while reading a grant of chunks that cannot be cut" : "sent "));
    CHECK(e.to_peer.bytes.size() == (unit == 0 ? 2 * frame::size + bytes : frame::size));
    CHECK((e.stripe_to_peer.bytes.size() > bytes) == (unit == 8));
  }
}
