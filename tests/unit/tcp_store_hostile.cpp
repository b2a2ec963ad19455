// SPDX-License-Identifier: BSL-1.0
// Clients of the TCP store that are idle, lie, flood or do not read: whatever they do, another client is served.
#include <doctest/doctest.h>

#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "store_contract.hpp"
#include "tcp_store_support.hpp"

using namespace store_test;

TEST_CASE("tcp_store: one byte and then silence") {
  tcp_store_server_options served;
  served.hello_timeout = 500ms;
  const tcp_store_server server(served);
  raw_client slow(server.where());
  slow.send("c");
  check_service(server);
  CHECK(slow.is_closed_by_server());  // at the deadline of the hello
}

TEST_CASE("tcp_store: garbage, and the protocols of others") {
  const tcp_store_server server{tcp_store_server_options{}};
  std::mt19937 random(3);
  for (int i = 0; i < 30; ++i) {
    std::string bytes(1 + random() % 4000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    raw_client c(server.where());
    c.send(bytes);
  }
  raw_client web(server.where());
  web.send("GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: something that is longer than a hello of ours is\r\n\r\n");
  const std::string reply = web.receive(1000);
  CHECK(reply.size() == cohort::transport::hello_size);  // one fixed reply, then the end
  CHECK(reply.starts_with("cohort<\n"));
  CHECK(web.was_closed_in_order());
  check_service(server);
}

TEST_CASE("tcp_store: promises of lengths that nobody keeps") {
  const tcp_store_server server{tcp_store_server_options{}};
  std::vector<std::unique_ptr<raw_client>> liars;
  const auto liar = [&]() -> raw_client& {
    liars.push_back(std::make_unique<raw_client>(server.where()));
    liars.back()->say_hello();
    return *liars.back();
  };
  SUBCASE("a request of 4 GiB is refused at its head") {
    std::string head;
    cohort::detail::request_head h;
    h.size = 0xffffffff;
    encode(h, head);
    raw_client& c = liar();
    c.send(head);
    CHECK(c.is_closed_by_server());
  }
  SUBCASE("a key of 4 GiB in a short request") {
    raw_client& c = liar();
    c.ask(cohort::detail::store_call::get, 1, 0, std::string("\xff\xff\xff\xff") + "abc");
    CHECK(c.is_closed_by_server());
  }
  SUBCASE("four thousand million keys to wait for") {
    raw_client& c = liar();
    c.ask(cohort::detail::store_call::wait, 1, 0, "\xff\xff\xff\xff");
    CHECK(c.is_closed_by_server());
  }
  SUBCASE("a call that does not exist") {
    raw_client& c = liar();
    c.ask(static_cast<cohort::detail::store_call>(99), 1, 0, "");
    CHECK(c.is_closed_by_server());
  }
  SUBCASE("an allowed length of which only a little comes") {
    const std::size_t before = resident();
    for (int i = 0; i < 20; ++i) {
      std::string head;
      cohort::detail::request_head h;
      h.size = std::uint32_t{16} << 20;
      encode(h, head);
      liar().send(head + "a little");
    }
    check_service(server);
    CHECK(resident() < before + (std::size_t{64} << 20));  // believed, they would have cost 320 MiB
  }
  check_service(server);
}

TEST_CASE("tcp_store: two hundred idle connections") {
  tcp_store_server_options served;
  served.hello_timeout = 1h;  // so that it is their number that ends them
  const tcp_store_server server(served);
  tcp_store before = connect_to(server);
  std::vector<std::unique_ptr<raw_client>> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(std::make_unique<raw_client>(server.where()));
  before.set("a", "1", soon());
  CHECK(before.get("a", soon()) == "1");
  check_service(server);  // a new client too: the oldest of the idle ones made room
  CHECK(eventually([&] { return server.connections() <= 1 + 65; }));
  CHECK(idle.front()->is_closed_by_server());
}

TEST_CASE("tcp_store: more clients than there may be") {
  const tcp_store_server server{tcp_store_server_options{}};
  std::vector<tcp_store> clients;
  for (int i = 0; i < 65; ++i) clients.push_back(connect_to(server));
  const failure full = failure_of([&] { (void)connect_to(server); });
  CHECK(full.code == errc::store_failed);
  CHECK(full.says("it has 65 clients, which is its limit"));
  clients.pop_back();
  CHECK(eventually([&] { return server.connections() == 64; }));
  check_service(server);
}

TEST_CASE("tcp_store: more waiting calls than one client may have") {
  const tcp_store_server server{tcp_store_server_options{}};
  raw_client greedy(server.where());
  greedy.say_hello();
  for (std::uint32_t i = 0; i < 65; ++i) greedy.ask(cohort::detail::store_call::get, i, 60000, key_body("k"));
  const std::string head = greedy.receive(cohort::detail::reply_head_size);
  REQUIRE(head.size() == cohort::detail::reply_head_size);
  std::array<unsigned char, cohort::detail::reply_head_size> bytes{};
  std::copy(head.begin(), head.end(), bytes.begin());
  const cohort::detail::reply_head reply = cohort::detail::decode_reply_head(bytes);
  CHECK(reply.id == 64);
  CHECK(reply.status == static_cast<std::uint32_t>(errc::store_failed));
  CHECK(greedy.receive(reply.size).find("the limits are 64 calls and items and 131072 keys") != std::string::npos);
  check_service(server);
  tcp_store s = connect_to(server);
  s.set("k", "v", soon());  // the other 64 are answered
  CHECK(greedy.receive(64 * (cohort::detail::reply_head_size + 1)).size() ==
        64 * (cohort::detail::reply_head_size + 1));
}

TEST_CASE("tcp_store: a client that asks and never reads") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store s = connect_to(server);
  s.set("large", std::string(std::size_t{8} << 20, 'x'), soon());
  raw_client deaf(server.where());
  deaf.say_hello();
  // Waiting calls all come due at once: their replies share the value with the table.
  for (std::uint32_t i = 0; i < 10; ++i) deaf.ask(cohort::detail::store_call::get, i, 60000, key_body("late"));
  deaf.ask(cohort::detail::store_call::set, 10, 0, key_body("asked") + key_body(""));
  (void)s.get("asked", soon());  // so all ten are waiting
  s.set("late", std::string(std::size_t{8} << 20, 'x'), soon());
  check_service(server);
  // One that keeps asking is read no further than its queue allows, and stays connected.
  raw_client slow(server.where());
  slow.say_hello();
  for (std::uint32_t i = 0; i < 10; ++i) slow.ask(cohort::detail::store_call::get, i, 0, key_body("large"));
  check_service(server);
  const std::size_t all = 10 * (cohort::detail::reply_head_size + (std::size_t{8} << 20));
  CHECK(slow.receive(all).size() == all);
  const std::size_t reply_of_set = cohort::detail::reply_head_size;
  CHECK(deaf.receive(reply_of_set + all).size() == reply_of_set + all);  // it was only late
}

TEST_CASE("tcp_store: the limits of the whole table hold for all clients together") {
  tcp_store_server_options served;
  served.limits.keys = 2;
  const tcp_store_server server(served);
  tcp_store one = connect_to(server);
  tcp_store two = connect_to(server);
  one.set("a", "", soon());
  two.set("b", "", soon());
  const failure full = failure_of([&] { one.set("c", "", soon()); });
  CHECK(full.code == errc::store_failed);
  CHECK(full.text == "set: the store holds 2 keys, which is its limit; \"c\" is one too many");
  two.set("a", "still here", soon());
}

TEST_CASE("tcp_store: nothing is left open") {
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    const tcp_store_server server{tcp_store_server_options{}};
    tcp_store a = connect_to(server);
    tcp_store b = connect_to(server);
    a.set("k", "v", soon());
    raw_client c(server.where());
    CHECK(b.get("k", soon()) == "v");
  }
  CHECK(open_descriptors() == before);
}
