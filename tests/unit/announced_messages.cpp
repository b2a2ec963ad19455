// SPDX-License-Identifier: BSL-1.0
// Messages whose first bytes come with their announcement, without sockets: two connections over streams that take and give as
// little as they please, and one whose peer may send anything.
#include "../support/between.hpp"
#include "../support/memory_stream.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/peer_connection.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
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

constexpr std::size_t unasked = 1000;  // bytes that may come without a question
constexpr std::uint64_t begun = std::uint64_t{1} << 61;

/// One end: a message is known by its context, and one that nobody has asked for is kept.
struct end : peer_connection_owner {
  std::shared_ptr<peer_connection> connection{};
  std::map<std::uint64_t, request*> posted{};
  std::map<std::uint64_t, early_message> early{};
  std::vector<const request*> sent{};
  std::vector<const request*> received{};
  std::string lost{};

  end(pipe& out, pipe& in, generator& random)
      : connection(std::make_shared<peer_connection>(static_cast<peer_connection_owner&>(*this),
                                                     std::make_unique<memory_stream>(out, in, random, unasked), 1)) {}

  void receive(request& r) {
    const auto at = early.find(r.header.context);
    if (at == early.end()) {
      posted[r.header.context] = &r;
      return;
    }
    early_message& m = at->second;
    r.header = m.header;
    const bool comes = m.arrived < m.along;
    if (comes) {
      connection->claim(m, r);
    } else {
      scatter_into(r, 0, m.payload.data(), m.arrived);
      if (m.along > 0) connection->return_credit(m.arrived);
    }
    if (m.ticket != 0) {
      connection->grant(r, m.ticket);
    } else if (!comes) {
      received.push_back(&r);
    }
    early.erase(at);
  }
  void arrives(peer_connection& c, const envelope& header, std::uint64_t ticket, std::size_t along) {
    if (const auto at = posted.find(header.context); at != posted.end()) {
      request& r = *at->second;
      posted.erase(at);
      r.header = header;
      r.place = &c;
      if (along > 0 || ticket == 0) c.land_in(r);
      if (ticket != 0) c.grant(r, ticket);
      return;
    }
    early_message& m = early[header.context];
    m.header = header;
    m.ticket = ticket;
    m.along = along;
    m.payload = cohort::detail::byte_buffer(along);
    if (along > 0) c.land_in(m);
  }
  void on_message(peer_connection& c, const envelope& header) override { arrives(c, header, 0, header.bytes); }
  void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) override {
    arrives(c, header, ticket, c.comes_along(ticket));
  }
  void on_received(peer_connection&, request& r) override { received.push_back(&r); }
  void on_sent(request& r) override { sent.push_back(&r); }
  void on_goodbye(peer_connection&) override {}
  void on_lost(peer_connection& c, const boost::system::error_code&, const char* what) override {
    lost = what;
    c.close();
  }
  void on_stripe_lost(peer_connection&, const boost::system::error_code&, const char*) override {}
  void turn() {
    if (connection->open()) connection->try_read();
    if (connection->open()) connection->try_write();
  }
};

struct couple {
  generator random;
  pipe there{};
  pipe back{};
  end a{there, back, random};
  end b{back, there, random};

  explicit couple(std::uint64_t seed) : random(seed) {
    there.room = between(random, 1, 3000);
    back.room = between(random, 1, 3000);
  }
  void turns(int n) {
    for (int i = 0; i < n; ++i) (between(random, 0, 1) == 0 ? a : b).turn();
  }
};

std::unique_ptr<message> message_of(generator& random, std::uint64_t context, bool used_early) {
  const std::size_t bytes = between(random, 0, 2) == 0 ? between(random, 0, unasked) : between(random, 1, 20 * unasked);
  auto m = std::make_unique<message>(random, bytes, used_early);
  m->send.header.context = m->receive.header.context = context;
  return m;
}

/// What an end says that is told of a message of so many bytes, some of which come along, and then gets data.
std::string answer_to(std::uint64_t announced, std::uint64_t along, std::uint64_t data) {
  generator random(3);
  pipe out;
  pipe in;
  out.room = std::size_t{1} << 20;
  end e(out, in, random);
  std::vector<std::byte> memory(announced);
  const piece whole{memory.data(), memory.size()};
  request r;
  r.header.bytes = announced;
  r.pieces = &whole;
  r.piece_count = 1;
  e.posted[0] = &r;
  const auto say = [&in](frame_kind kind, std::uint64_t bytes, std::uint64_t behind) {
    frame f;
    f.kind = kind;
    f.ticket = begun | 5;
    f.header.bytes = bytes;
    const auto header = f.encode();
    const auto* const from = reinterpret_cast<const std::byte*>(header.data());
    in.bytes.insert(in.bytes.end(), from, from + header.size());
    in.bytes.insert(in.bytes.end(), behind, std::byte{9});
  };
  say(frame_kind::announce, announced, along);
  say(frame_kind::data, data, data);
  for (int i = 0; i < 1000 && e.lost.empty() && e.received.empty(); ++i) e.turn();
  const bool whole_there = std::all_of(memory.begin(), memory.end(), [](std::byte b) { return b == std::byte{9}; });
  return e.received.empty() ? e.lost : whole_there ? "received" : "received something else";
}

}  // namespace

TEST_CASE("announced messages: both ways, asked for before and after they come") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    couple c(seed);
    std::vector<std::unique_ptr<message>> all;
    std::vector<std::size_t> not_asked_for;
    for (std::size_t i = 0; i < 40; ++i) {
      all.push_back(message_of(c.random, i, between(c.random, 0, 2) == 0));
      message& m = *all.back();
      end& from = i % 2 == 0 ? c.a : c.b;
      end& to = i % 2 == 0 ? c.b : c.a;
      const std::uint64_t asked = between(c.random, 0, 2);
      if (asked == 0) to.receive(m.receive);
      from.connection->send(m.send);
      c.turns(static_cast<int>(between(c.random, 0, 30)));
      if (asked == 1) to.receive(m.receive);
      if (asked == 2) not_asked_for.push_back(i);
    }
    std::shuffle(not_asked_for.begin(), not_asked_for.end(), c.random);
    for (const std::size_t i : not_asked_for) {
      (i % 2 == 0 ? c.b : c.a).receive(all[i]->receive);
      c.turns(static_cast<int>(between(c.random, 0, 30)));
    }
    for (int t = 0; t < 200000 && c.a.received.size() + c.b.received.size() < all.size(); ++t) c.turns(1);
    REQUIRE(c.a.lost.empty());
    REQUIRE(c.b.lost.empty());
    REQUIRE(c.a.received.size() + c.b.received.size() == all.size());
    REQUIRE(c.a.sent.size() + c.b.sent.size() == all.size());
    for (const auto& m : all) REQUIRE(m->arrived());
    CHECK_FALSE(c.a.connection->awaits_more());
    CHECK_FALSE(c.b.connection->awaits_more());
  }
}

TEST_CASE("announced messages: what is withdrawn touches no memory any more, and the next arrive whole") {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    CAPTURE(seed);
    couple c(seed);
    const bool used_early = seed % 3 == 0;
    auto gone = std::make_unique<message>(c.random, between(c.random, unasked + 1, 10 * unasked), used_early);
    gone->send.header.context = gone->receive.header.context = 1;
    auto next = message_of(c.random, 2, used_early);
    next->send.header.context = next->receive.header.context = 2;
    const bool sender = seed % 2 == 0;
    c.b.receive(gone->receive);
    c.a.connection->send(gone->send);
    c.turns(static_cast<int>(between(c.random, 0, 40)));
    request& withdrawn = sender ? gone->send : gone->receive;
    const bool was_over = sender ? !c.a.sent.empty() : !c.b.received.empty();
    if (!was_over) {
      if (withdrawn.place != nullptr) static_cast<peer_connection*>(withdrawn.place)->withdraw(withdrawn);
      if (!sender) c.b.posted.erase(1);
      (sender ? gone->from : gone->to).assign(gone->from.size(), std::byte{0x55});
      if (used_early) gone->scratch.assign(gone->scratch.size(), std::byte{0x55});
    }
    c.b.receive(next->receive);
    c.a.connection->send(next->send);
    c.turns(4000);
    REQUIRE(c.a.lost.empty());
    REQUIRE(c.b.lost.empty());
    REQUIRE(std::find(c.b.received.begin(), c.b.received.end(), &next->receive) != c.b.received.end());
    REQUIRE(next->arrived());
    if (!sender && !was_over && !used_early) {
      REQUIRE(std::all_of(gone->to.begin(), gone->to.end(), [](std::byte b) { return b == std::byte{0x55}; }));
    }
  }
}

TEST_CASE("announced messages: first bytes without others, and others of another length, end the connection") {
  CHECK(answer_to(unasked + 1, unasked, 1) == "received");
  CHECK(answer_to(5000, unasked, 4000) == "received");
  CHECK(answer_to(unasked, unasked, 0) == "reading the first bytes of a message that has no others");
  CHECK(answer_to(3, 3, 0) == "reading the first bytes of a message that has no others");
  CHECK(answer_to(5000, unasked, 5000) == "reading data of another length than announced");
  CHECK(answer_to(5000, unasked, 3999) == "reading data of another length than announced");
}
