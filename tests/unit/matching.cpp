// SPDX-License-Identifier: BSL-1.0
// Which message belongs to which receive, without any I/O: order, wildcards, probes, what is dropped, and what is said
// of a message that does not fit. One property test against a model that is a list.
#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <cohort/run_local.hpp>
#include <cohort/transport/inproc.hpp>
#include <cohort/transport/matching.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace cohort;
using namespace cohort::transport;

namespace {

using harness::contains;

envelope message(int source, std::uint32_t sequence, bool tagged, std::uint64_t bytes = 0, std::uint64_t context = 0) {
  envelope e;
  e.context = context;
  e.sequence = sequence;
  e.tagged = tagged;
  e.source = source;
  e.bytes = bytes;
  return e;
}

std::unique_ptr<early_message> early(const envelope& e) {
  auto m = std::make_unique<early_message>();
  m->header = e;
  return m;
}

request receive(int peer, std::uint32_t sequence, bool tagged, bool any_tag = false, std::uint64_t context = 0) {
  request r;
  r.peer = peer;
  r.header = message(-1, sequence, tagged, 0, context);
  r.any_tag = any_tag;
  return r;
}

}  // namespace

TEST_CASE("matching: whose message a receive may wait for; of very many receives, anybody's") {
  matcher m;
  CHECK_FALSE(m.may_await(0, 1));
  request from_one = receive(1, 4, true);
  m.post(from_one);
  CHECK(m.may_await(0, 1));
  CHECK_FALSE(m.may_await(0, 2));
  CHECK_FALSE(m.may_await(9, 1));
  request whoever = receive(-1, 5, true);
  m.post(whoever);
  CHECK(m.may_await(0, 2));
  m.withdraw(whoever);
  CHECK_FALSE(m.may_await(0, 2));
  m.withdraw(from_one);
  std::list<request> many;
  bool anybody = false;
  for (int i = 0; i < 1000; ++i) {
    many.push_back(receive(1, 4, true));
    m.post(many.back());
    anybody = m.may_await(0, 2);
    if (i == 8) CHECK_FALSE(anybody);
  }
  CHECK(anybody);
  for (request& r : many) m.withdraw(r);
}

TEST_CASE("matching: a collective is found by its number and its sender, a message by source and tag") {
  matcher m;
  request number_four = receive(1, 4, false);
  request tag_four = receive(1, 4, true);
  m.post(number_four);
  m.post(tag_four);
  CHECK(m.take_posted(message(2, 4, false)) == nullptr);
  CHECK(m.take_posted(message(1, 5, false)) == nullptr);
  CHECK(m.take_posted(message(1, 4, false, 0, 9)) == nullptr);
  CHECK(m.take_posted(message(1, 4, true)) == &tag_four);
  CHECK(tag_four.place == nullptr);
  CHECK(m.take_posted(message(1, 4, false)) == &number_four);
  CHECK(m.take_posted(message(1, 4, false)) == nullptr);
}

TEST_CASE("matching: wildcards take tagged messages only, the oldest first") {
  matcher m;
  m.keep(early(message(3, 0, false)));
  m.keep(early(message(3, 7, true, 70)));
  m.keep(early(message(2, 7, true, 71)));
  m.keep(early(message(3, 8, true, 72)));
  const request any = receive(-1, 0, true, true);
  const request seven = receive(-1, 7, true);
  const request from_three = receive(3, 0, true, true);
  CHECK(m.take_early(seven)->header.bytes == 70);
  CHECK(m.take_early(from_three)->header.bytes == 72);
  CHECK(m.take_early(any)->header.bytes == 71);
  CHECK(m.take_early(any) == nullptr);
  CHECK(m.take_early(receive(3, 0, false)) != nullptr);
}

TEST_CASE("matching: a probe sees a message and leaves it; a receive never takes the place of a probe") {
  matcher m;
  request probe = receive(1, 5, true);
  probe.probing = true;
  m.post(probe);
  CHECK(m.take_posted(message(1, 5, true)) == nullptr);
  CHECK(m.find_early(probe) == nullptr);
  CHECK(m.awaits(0, 1, true));
  const early_message& kept = m.keep(early(message(1, 5, true, 12)));
  CHECK(m.take_probe(kept.header) == &probe);
  CHECK(probe.header.bytes == 12);
  CHECK(m.take_probe(kept.header) == nullptr);
  CHECK(m.find_early(probe) == &kept);
  CHECK_FALSE(m.awaits(0, 1, true));
}

TEST_CASE("matching: what is withdrawn, discarded and forgotten is not found again") {
  matcher m;
  request a = receive(1, 1, true);
  request b = receive(1, 1, true);
  m.post(a);
  m.post(b);
  m.withdraw(a);
  CHECK(m.take_posted(message(1, 1, true)) == &b);
  request send;
  send.header = message(0, 2, true);
  auto of_sender = early(send.header);
  of_sender->sender = &send;
  m.keep(std::move(of_sender));
  m.discard_sender(send);
  CHECK(m.take_early(receive(0, 2, true)) == nullptr);
  m.keep(early(message(4, 1, true)));
  m.keep(early(message(5, 1, true)));
  m.discard_if([](const early_message& e) { return e.header.source == 4; });
  CHECK(m.take_early(receive(4, 1, true)) == nullptr);
  m.keep(early(message(5, 1, true, 1, 66)));
  int dropped = 0;
  m.forget(66, [&dropped](const early_message& e) { dropped += static_cast<int>(e.header.bytes); });
  CHECK(dropped == 1);
  CHECK(m.take_early(receive(5, 1, true, false, 66)) == nullptr);
  CHECK(m.take_early(receive(5, 1, true)) != nullptr);
}

TEST_CASE("matching: messages of many collectives ahead, in any order, of which one sender's are discarded") {
  matcher m;
  constexpr std::uint32_t ahead = 3000;
  for (std::uint32_t n = 0; n < ahead; ++n) {
    const std::uint32_t number = 0U - ahead / 2 + n;  // on both sides of where they begin again
    for (const int source : {4, 5, 4}) m.keep(early(message(source, number, false, n)));
    m.keep(early(message(5, number, false, ahead + n)));
  }
  m.discard_if([](const early_message& e) { return e.header.source == 4; });
  CHECK_FALSE(m.nothing_early());
  for (std::uint32_t i = 0; i < ahead; ++i) {
    const std::uint32_t n = i * 7 % ahead;
    const std::uint32_t number = 0U - ahead / 2 + n;
    CHECK(m.take_early(receive(4, number, false)) == nullptr);
    for (const std::uint64_t bytes : {n, ahead + n}) {
      const auto found = m.take_early(receive(5, number, false));
      REQUIRE(found != nullptr);
      CHECK(found->header.bytes == bytes);
    }
    CHECK(m.take_early(receive(5, number, false)) == nullptr);
  }
  CHECK(m.nothing_early());
}

TEST_CASE("matching: an early message of another call under the same number is found before it is asked for") {
  matcher m;
  signature mine;
  mine.kind = operation_kind::barrier;
  auto e = early(message(1, 3, false));
  e->header.call.kind = operation_kind::broadcast;
  m.keep(std::move(e));
  CHECK(m.conflicting(0, 3, mine) != nullptr);
  CHECK(m.conflicting(0, 4, mine) == nullptr);
  CHECK(m.conflicting(1, 3, mine) == nullptr);
  mine.kind = operation_kind::broadcast;
  CHECK(m.conflicting(0, 3, mine) == nullptr);
}

TEST_CASE("matching: without a request only the oldest is taken, if it is whole, has room and is what is expected") {
  matcher m;
  const auto keep = [&m](const envelope& e, std::size_t arrived) -> early_message& {
    auto each = early(e);
    each->arrived = arrived;
    return m.keep(std::move(each));
  };
  const envelope wanted = message(-1, 7, true);
  const auto take = [&m](const envelope& e, int source, std::size_t room) -> std::uint64_t {
    const auto taken = m.take_whole(e, source, room);
    return taken == nullptr ? 0 : taken->header.bytes;
  };
  keep(message(1, 7, false, 1), 1);  // of a collective
  keep(message(2, 7, true, 2), 2);   // another's
  keep(message(1, 8, true, 3), 3);   // another tag
  early_message& first = keep(message(1, 7, true, 40), 39);
  keep(message(1, 7, true, 5), 5);
  CHECK(take(wanted, 1, 100) == 0);  // not all of it has come, and none comes before it
  first.arrived = 40;
  CHECK(take(wanted, 1, 39) == 0);
  request earlier = receive(-1, 9, true);
  m.post(earlier);
  CHECK(take(wanted, 1, 100) == 0);
  m.withdraw(earlier);
  first.ticket = 3;  // it waits at its sender
  CHECK(take(wanted, 1, 100) == 0);
  first.ticket = 0;
  first.header.call.type = 6;
  CHECK(take(wanted, 1, 100) == 0);
  first.header.call.type = wanted.call.type;
  CHECK(take(wanted, 1, 100) == 40);
  CHECK(take(wanted, 1, 100) == 5);
  CHECK(take(wanted, 1, 100) == 0);
  envelope other_call = message(-1, 7, false);
  other_call.call.count = 9;
  CHECK(take(other_call, 1, 1) == 0);
  CHECK_FALSE(m.nothing_against(0, 7, other_call.call));
  CHECK(m.nothing_against(0, 7, signature{}));
  CHECK(m.nothing_against(0, 8, other_call.call));
  CHECK(take(message(-1, 7, false), 1, 1) == 1);
  CHECK(take(wanted, 2, 2) == 2);
  CHECK(take(message(-1, 8, true), 1, 3) == 3);
  CHECK(m.nothing_early());
}

TEST_CASE("matching: random messages and receives pair up as they do in a list") {
  std::mt19937 random(7);
  for (int run = 0; run < 200; ++run) {
    matcher m;
    std::deque<request> receives;
    std::list<std::pair<envelope, std::uint64_t>> model_early;
    std::list<request*> model_posted;
    std::uint64_t number = 1;
    // Few numbers, which are asked for; or many, of which most are not.
    const unsigned numbers = run % 2 == 0 ? 3 : 80;
    const auto fits = [](const envelope& e, const request& r) {
      if (e.context != r.header.context || e.tagged != r.header.tagged) return false;
      if (r.peer >= 0 && r.peer != e.source) return false;
      return (e.tagged && r.any_tag) || e.sequence == r.header.sequence;
    };
    for (int step = 0; step < 300; ++step) {
      const bool tagged = random() % 3 != 0;
      const std::uint64_t context = random() % 2;
      if (random() % 2 == 0) {
        const envelope e = message(static_cast<int>(random() % 3), static_cast<std::uint32_t>(random() % numbers),
                                   tagged, number++, context);
        const auto expected =
            std::find_if(model_posted.begin(), model_posted.end(), [&](const request* r) { return fits(e, *r); });
        request* const found = m.take_posted(e);
        REQUIRE(found == (expected == model_posted.end() ? nullptr : *expected));
        if (found != nullptr) {
          model_posted.erase(expected);
        } else {
          m.keep(early(e));
          model_early.emplace_back(e, e.bytes);
        }
      } else {
        const bool any = tagged && random() % 4 == 0;
        const int peer = tagged && random() % 4 == 0 ? -1 : static_cast<int>(random() % 3);
        receives.push_back(receive(peer, static_cast<std::uint32_t>(random() % numbers), tagged, any, context));
        request& r = receives.back();
        const auto expected = std::find_if(model_early.begin(), model_early.end(),
                                           [&](const auto& known) { return fits(known.first, r); });
        const auto found = m.take_early(r);
        REQUIRE((found != nullptr) == (expected != model_early.end()));
        if (found != nullptr) {
          REQUIRE(found->header.bytes == expected->second);
          model_early.erase(expected);
        } else {
          m.post(r);
          model_posted.push_back(&r);
        }
      }
    }
    for (request* const r : model_posted) m.withdraw(*r);
  }
}

TEST_CASE("matching: a message that does not fit its receive is told with both sides") {
  const auto hub = std::make_shared<inproc_hub>(2, inproc_hub::threading::one_thread);
  const communicator<inproc> world = make_local_world(hub, 0);
  const group& g = *world.calls().state();
  request r = receive(1, 5, true);
  r.header.bytes = 16;
  r.header.call.type = element_type_id<float>;
  r.header.call.count = 4;
  envelope e = message(1, 5, true, 16);
  e.call = r.header.call;
  CHECK_FALSE(check_delivery(g, e, r).has_value());
  e.bytes = 8;
  CHECK_FALSE(check_delivery(g, e, r).has_value());  // a shorter message is no mistake
  e.bytes = 20;
  e.call.count = 5;
  auto wrong = check_delivery(g, e, r);
  REQUIRE(wrong.has_value());
  CHECK(wrong->code == errc::truncated);
  CHECK(wrong->text == "rank 1 sent 5 elements with tag 5, rank 0 has room for 4");
  e.call.type = element_type_id<int>;
  wrong = check_delivery(g, e, r);
  REQUIRE(wrong.has_value());
  CHECK(wrong->code == errc::mismatch);
  CHECK(wrong->text == "rank 1 sent elements of int32 with tag 5, rank 0 receives float32");

  r = receive(1, 5, false);
  r.header.bytes = 16;
  r.header.call.kind = operation_kind::all_gather_v;
  e = message(1, 5, false, 12);
  e.call = r.header.call;
  wrong = check_delivery(g, e, r);
  REQUIRE(wrong.has_value());
  CHECK(contains(wrong->text, "rank 1 sent 12 bytes of all_gather_v(), rank 0 expected 16"));
  e.call.kind = operation_kind::broadcast;
  CHECK(contains(check_delivery(g, e, r)->text, "rank 0 called all_gather_v(), rank 1 called broadcast()"));
}

TEST_CASE("matching: a receive that grows makes room, or says that it cannot") {
  const auto hub = std::make_shared<inproc_hub>(2, inproc_hub::threading::one_thread);
  const communicator<inproc> world = make_local_world(hub, 0);
  const group& g = *world.calls().state();
  static std::array<std::byte, 8> memory{};
  static piece room{};
  request r = receive(1, 5, true);
  r.make_room = [](request& self, std::uint64_t bytes) noexcept {
    if (bytes > memory.size()) return false;
    room = {memory.data(), static_cast<std::size_t>(bytes)};
    self.pieces = &room;
    self.piece_count = 1;
    return true;
  };
  CHECK_FALSE(accept_delivery(g, message(1, 5, true, 8), r).has_value());
  CHECK(r.pieces == &room);
  const auto wrong = accept_delivery(g, message(1, 5, true, 9), r);
  REQUIRE(wrong.has_value());
  CHECK(wrong->code == errc::truncated);
  CHECK(contains(wrong->text, "rank 0 cannot make room"));
}

TEST_CASE("matching: bytes go where the pieces are, from any offset on") {
  std::array<std::byte, 10> into{};
  const piece pieces[] = {{into.data(), 3}, {into.data() + 3, 0}, {into.data() + 5, 4}};
  request r;
  r.pieces = pieces;
  r.piece_count = 3;
  std::array<std::byte, 7> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  scatter_into(r, 0, from.data(), 2);
  scatter_into(r, 2, from.data() + 2, 5);
  const std::array<int, 10> expected{1, 2, 3, 0, 0, 4, 5, 6, 7, 0};
  for (std::size_t i = 0; i < into.size(); ++i) CHECK(static_cast<int>(into[i]) == expected[i]);
  std::array<std::byte, 7> back{};
  gather_from(r, back.data());
  CHECK(back == from);
}
