// SPDX-License-Identifier: BSL-1.0
// Queues over TCP with clients that stall, lie or die: nobody else waits for them, and no item goes with them.
#include <doctest/doctest.h>

#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../support/child_process.hpp"
#include "store_contract.hpp"
#include "tcp_store_support.hpp"

using namespace store_test;
using cohort::detail::store_call;

namespace {

std::string pair_body(std::string_view key, std::string_view value) { return key_body(key) + key_body(value); }
std::string number_body(std::uint32_t value) {
  std::string bytes;
  cohort::detail::byte_writer(bytes).number(value);
  return bytes;
}

struct raw_reply {
  cohort::detail::reply_head head{};
  std::string body{};
};
raw_reply read_reply(raw_client& c) {
  const std::string head = c.receive(cohort::detail::reply_head_size);
  REQUIRE(head.size() == cohort::detail::reply_head_size);
  std::array<unsigned char, cohort::detail::reply_head_size> bytes{};
  std::copy(head.begin(), head.end(), bytes.begin());
  raw_reply r;
  r.head = cohort::detail::decode_reply_head(bytes);
  r.body = c.receive(r.head.size);
  return r;
}

/// Returns when the server has carried out what this client asked before.
void settle(raw_client& c) {
  c.ask(store_call::num_keys, 0xffff, 0, key_body(""));
  while (read_reply(c).head.id != 0xffff) continue;
}

}  // namespace

TEST_CASE("tcp_store: clients that are killed while they wait in queue_pop take no item with them") {
  const endpoint where = unused();
  tcp_store_options options;
  options.where = where;
  std::vector<harness::child_process> doomed;  // forked before this process has a thread
  for (int i = 0; i < 4; ++i) {
    doomed.emplace_back([&options, i] {
      tcp_store s(options, soon());
      s.set("waits/" + std::to_string(i), "", soon());
      (void)s.queue_pop("q", soon());
      return 0;
    });
  }
  tcp_store_server_options served;
  served.where = where;
  const tcp_store_server server(served);
  tcp_store s(options, soon());
  s.wait(std::vector<std::string>{"waits/0", "waits/1", "waits/2", "waits/3"}, soon());
  for (const auto& each : doomed) each.send_signal(SIGSTOP);  // in the middle of the wait, so that none can confirm
  for (const char* item : {"a", "b", "c", "d"}) s.queue_push("q", item, soon());
  for (auto& each : doomed) {
    each.send_signal(SIGKILL);
    CHECK(each.wait() == 128 + SIGKILL);
  }
  std::vector<std::string> got;
  for (std::size_t i = 0; i < doomed.size(); ++i) got.push_back(s.queue_pop("q", soon()));
  std::sort(got.begin(), got.end());  // they died in any order
  CHECK(got == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(s.queue_len("q", soon()) == 0);
}

TEST_CASE("tcp_store: an item on its way to a client that goes is the next client's, in its old place") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  auto silent = std::make_unique<raw_client>(server.where());
  silent->say_hello();
  silent->ask(store_call::queue_pop, 1, 60000, key_body("q"));
  settle(*silent);
  s.queue_push("q", "a", soon());
  s.queue_push("q", "b", soon());
  s.queue_push("q", "c", soon());
  SUBCASE("it has not even read it") {}
  SUBCASE("it has read it, and not said so") { CHECK(read_reply(*silent).body == "a"); }
  SUBCASE("it has taken two") {
    silent->ask(store_call::try_queue_pop, 2, 0, key_body("q"));
    CHECK(read_reply(*silent).body == "a");
    CHECK(read_reply(*silent).body == "+b");
  }
  silent.reset();
  CHECK(eventually([&] { return server.connections() == 1; }));
  for (const char* item : {"a", "b", "c"}) CHECK(s.queue_pop("q", soon()) == item);
}

TEST_CASE("tcp_store: an item that was confirmed is gone, whatever becomes of its client") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  s.queue_push("q", "a", soon());
  {
    raw_client c(server.where());
    c.say_hello();
    c.ask(store_call::queue_pop, 5, 60000, key_body("q"));
    CHECK(read_reply(c).body == "a");
    c.ask(store_call::queue_taken, 6, 0, number_body(5));
    settle(c);
  }
  { CHECK(connect_to(server).try_queue_pop("q", soon()) == std::nullopt); }
  CHECK(eventually([&] { return server.connections() == 1; }));
  CHECK(s.try_queue_pop("q", soon()) == std::nullopt);
  s.set("q", "a value", soon());  // nothing of the queue is left
}

TEST_CASE("tcp_store: a stalled client in queue_pop holds up nobody, and goes without its item") {
  const tcp_store_server server{tcp_store_server_options{}};
  raw_client stalled(server.where());
  stalled.say_hello();
  stalled.ask(store_call::queue_pop, 1, 60000, key_body("q"));
  settle(stalled);
  // Behind it in the same line: the second push is theirs though the first was never confirmed.
  std::string got;
  std::thread waiter([&] { got = connect_to(server).queue_pop("q", soon()); });
  tcp_store s = connect_to(server);
  s.queue_push("q", "for the stalled one", soon());
  s.queue_push("q", "for the other", soon());
  waiter.join();
  CHECK((got == "for the other" || got == "for the stalled one"));
  check_service(server);
}

TEST_CASE("tcp_store: confirmations of what was never given") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  s.queue_push("q", "a", soon());
  raw_client liar(server.where());
  liar.say_hello();
  SUBCASE("of nothing") { liar.ask(store_call::queue_taken, 1, 0, number_body(9)); }
  SUBCASE("twice") {
    liar.ask(store_call::queue_pop, 1, 0, key_body("q"));
    CHECK(read_reply(liar).body == "a");
    liar.ask(store_call::queue_taken, 2, 0, number_body(1));
    liar.ask(store_call::queue_taken, 3, 0, number_body(1));
  }
  SUBCASE("of what another was given") {
    raw_client other(server.where());
    other.say_hello();
    other.ask(store_call::queue_pop, 1, 0, key_body("q"));
    CHECK(read_reply(other).body == "a");
    liar.ask(store_call::queue_taken, 2, 0, number_body(1));
    CHECK(liar.is_closed_by_server());
  }
  CHECK(liar.is_closed_by_server());
  check_service(server);
}

TEST_CASE("tcp_store: a request that is given up waits no longer, and its item goes back") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  raw_client c(server.where());
  c.say_hello();
  c.ask(store_call::queue_pop, 1, 60000, key_body("q"));
  c.ask(store_call::get, 2, 60000, key_body("k"));
  c.ask(store_call::forget, 3, 0, number_body(1));
  c.ask(store_call::forget, 3, 0, number_body(2));
  c.ask(store_call::forget, 3, 0, number_body(2));   // again
  c.ask(store_call::forget, 3, 0, number_body(99));  // of nothing: its reply may have been on its way
  settle(c);
  s.queue_push("q", "a", soon());
  s.queue_push("q", "b", soon());
  s.set("k", "v", soon());
  c.ask(store_call::try_queue_pop, 4, 0, key_body("q"));
  CHECK(read_reply(c).head.id == 4);  // nothing came for 1 and 2
  CHECK(s.queue_len("q", soon()) == 1);
  c.ask(store_call::forget, 5, 0, number_body(4));
  settle(c);
  CHECK(s.queue_pop("q", soon()) == "a");
  CHECK(s.queue_pop("q", soon()) == "b");
}

TEST_CASE("tcp_store: two waiting pops under one number lose no item") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  {
    raw_client liar(server.where());
    liar.say_hello();
    liar.ask(store_call::queue_pop, 1, 60000, key_body("q"));
    liar.ask(store_call::queue_pop, 1, 60000, key_body("q"));
    settle(liar);
    s.queue_push("q", "a", soon());
    s.queue_push("q", "b", soon());
    while (!liar.receive(1).empty()) continue;  // the second one under that number ends it
  }
  CHECK(s.queue_pop("q", soon()) == "a");
  CHECK(s.queue_pop("q", soon()) == "b");
  CHECK(eventually([&] { return server.connections() == 1; }));
}

TEST_CASE("tcp_store: a client that takes items and never confirms is stopped at its limit") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  for (int i = 0; i < 70; ++i) s.queue_push("q", std::to_string(i), soon());
  {
    raw_client greedy(server.where());
    greedy.say_hello();
    for (std::uint32_t i = 0; i < 70; ++i) greedy.ask(store_call::try_queue_pop, i, 0, key_body("q"));
    for (int i = 0; i < 64; ++i) CHECK(read_reply(greedy).body == "+" + std::to_string(i));
    const raw_reply refused = read_reply(greedy);
    CHECK(refused.head.status == static_cast<std::uint32_t>(errc::store_failed));
    CHECK(refused.body.find("64 items that it has not confirmed; the limits are 64 calls and items") !=
          std::string::npos);
    CHECK(s.queue_len("q", soon()) == 6);
  }
  CHECK(eventually([&] { return s.queue_len("q", soon()) == 70; }));
  for (int i = 0; i < 70; ++i) CHECK(s.queue_pop("q", soon()) == std::to_string(i));
}

TEST_CASE("tcp_store: a queue is filled to the limit of the table and no further") {
  tcp_store_server_options served;
  served.limits.bytes = 10000;
  const tcp_store_server server(served);
  tcp_store s = connect_to(server);
  failure full;
  int pushed = 0;
  for (; full.text != "no error" && pushed < 1000; ++pushed) {
    full = failure_of([&] { s.queue_push("q", "", soon()); });
    if (full.code == errc::store_failed) break;
    full = {};
  }
  CHECK(pushed == 156);  // of 64 bytes each, and one for the key
  CHECK(full.says("queue_push: \"q\" would fill the store to 10049 bytes, the limit is 10000"));
  for (int i = 0; i < pushed; ++i) CHECK(s.queue_pop("q", soon()).empty());
  s.set("v", std::string(9999, 'v'), soon());
}

TEST_CASE("tcp_store: every new request, cut short at every byte and promised more than there is") {
  const tcp_store_server server{tcp_store_server_options{}};
  const std::vector<std::string> keys{"a", "bc"};
  const std::vector<cohort::key_value> pairs{{"a", "1"}, {"bc", "22"}};
  cohort::detail::request_body body;
  body.key = "key";
  body.value = "value";
  for (const store_call call :
       {store_call::append, store_call::multi_get, store_call::multi_set, store_call::queue_push, store_call::queue_pop,
        store_call::try_queue_pop, store_call::queue_len, store_call::queue_taken, store_call::forget}) {
    CAPTURE(name_of(call));
    const bool refers = call == store_call::queue_taken || call == store_call::forget;
    std::string bytes;
    encode(call, body, {keys, pairs}, bytes);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      raw_client c(server.where());
      c.say_hello();
      c.ask(call, 1, 0, bytes.substr(0, n));
      CHECK(c.is_closed_by_server());
    }
    for (std::size_t at = 0; at + 4 <= bytes.size() && !refers; ++at) {
      std::string liar = bytes;
      liar.replace(at, 4, "\xff\xff\xff\xff");
      if (cohort::detail::decode_request_body(call, liar, {})) continue;  // it hit text, which may be anything
      raw_client c(server.where());
      c.say_hello();
      c.ask(call, 1, 0, liar);
      CHECK(c.is_closed_by_server());
    }
  }
  tcp_store s = connect_to(server);
  CHECK(s.num_keys("", soon()) == 0);  // none of them was carried out
  check_service(server);
}

TEST_CASE("tcp_store: a reply of many values to a client that does not read them") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  s.set("large", std::string(std::size_t{7} << 20, 'x'), soon());
  raw_client deaf(server.where());
  deaf.say_hello();
  std::string late;
  cohort::detail::byte_writer(late).number(std::uint32_t{2}).text("large").text("late");
  for (std::uint32_t i = 0; i < 10; ++i) deaf.ask(store_call::multi_get, i, 60000, late);
  deaf.ask(store_call::set, 10, 0, pair_body("asked", ""));
  (void)s.get("asked", soon());
  s.set("late", "", soon());  // seventy megabytes come due at once
  check_service(server);
  // Two of them are kept until it reads, and the others are refused.
  CHECK(read_reply(deaf).head.id == 10);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const raw_reply r = read_reply(deaf);
    CHECK(r.head.id == i);
    CHECK(r.head.status == (i < 2 ? 0 : static_cast<std::uint32_t>(errc::store_failed)));
    CHECK((r.body.size() > (std::size_t{7} << 20)) == (i < 2));
  }
}
