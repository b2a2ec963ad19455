// SPDX-License-Identifier: BSL-1.0
// Clients of the TCP store that keep the rules and ask for much: at most their call is refused, never their connection.
#include <doctest/doctest.h>

#include <cohort/store/async_store.hpp>
#include <cohort/transport/tcp_async_store.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "store_contract.hpp"
#include "tcp_store_support.hpp"

using namespace store_test;
using cohort::async_store;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

async_store over(const tcp_store_server& server) { return cohort::async_tcp_store(client_of(server), soon()); }

}  // namespace

TEST_CASE("tcp_store: calls that wait for large values are all answered, however many come at once") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store other = connect_to(server);
  async_store s = over(server);
  std::vector<cohort::store_operation<std::string>> gets;
  SUBCASE("of one value of 8 MiB") {
    const std::string value(8 * mebibyte, 'v');
    for (int i = 0; i < 3; ++i) gets.push_back(s.get("k"));
    s.set("asked", "").wait();
    other.set("k", value, soon());
    for (auto& each : gets) CHECK(each.wait() == value);
  }
  SUBCASE("of many values of 1 MiB") {
    std::vector<cohort::key_value> half[2];
    for (std::size_t i = 0; i < 20; ++i) {
      const std::string key = "k" + std::to_string(i);
      gets.push_back(s.get(key));
      half[i % 2].emplace_back(key, std::string(mebibyte, static_cast<char>('a' + i)));
    }
    s.set("asked", "").wait();
    for (const auto& pairs : half) other.multi_set(pairs, soon());
    for (std::size_t i = 0; i < gets.size(); ++i) {
      CHECK(gets[i].wait() == std::string(mebibyte, static_cast<char>('a' + i)));
    }
  }
  SUBCASE("of items of 7 MiB") {
    for (int i = 0; i < 3; ++i) gets.push_back(s.queue_pop("q"));
    s.set("asked", "").wait();
    for (std::size_t i = 0; i < gets.size(); ++i) {
      other.queue_push("q", std::string(7 * mebibyte, static_cast<char>('a' + i)), soon());
    }
    for (std::size_t i = 0; i < gets.size(); ++i) {
      CHECK(gets[i].wait() == std::string(7 * mebibyte, static_cast<char>('a' + i)));
    }
  }
  s.set("after", "1").wait();
}

TEST_CASE("tcp_store: of calls that wait for several large values, one is refused where too many come at once") {
  const tcp_store_server server{tcp_store_server_options{}};
  tcp_store other = connect_to(server);
  other.set("large", std::string(7 * mebibyte, 'x'), soon());
  async_store s = over(server);
  const std::vector<std::string> both{"large", "late"};
  std::vector<cohort::store_operation<std::vector<std::string>>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(s.multi_get(both));
  s.set("asked", "").wait();
  other.set("late", "", soon());
  CHECK(calls[0].wait().front().size() == 7 * mebibyte);
  CHECK(calls[1].wait().front().size() == 7 * mebibyte);
  const failure refused = failure_of([&] { (void)calls[2].wait(); });
  CHECK(refused.code == errc::store_failed);
  CHECK(refused.text ==
        "multi_get: values of 7340040 bytes came while this client had not read 14680080 bytes for other calls, the "
        "limit is 16777216 together; call again when those are done");
  CHECK(s.multi_get(both).wait().front().size() == 7 * mebibyte);
}

TEST_CASE("tcp_store: what the server would not read is refused here, and the connection stays") {
  const tcp_store_server server{tcp_store_server_options{}};
  const std::string long_prefix(2000, 'x');
  const std::vector<std::string> keys(131073, "k");
  const std::vector<cohort::key_value> pairs(131073, {"k", "v"});
  const auto refused = [](const failure& f, const std::string& call) {
    CHECK(f.code == errc::store_failed);
    CHECK(f.text == call + ": 131073 keys, the limit for one call is 131072; use several calls");
  };
  SUBCASE("blocking") {
    tcp_store s = connect_to(server);
    s.set("k", "v", soon());
    CHECK(s.num_keys(long_prefix, soon()) == 0);
    refused(failure_of([&] { s.multi_set(pairs, soon()); }), "multi_set");
    refused(failure_of([&] { (void)s.multi_get(keys, soon()); }), "multi_get");
    refused(failure_of([&] { s.wait(keys, soon()); }), "wait");
    refused(failure_of([&] { (void)s.check(keys, soon()); }), "check");
    s.multi_set(std::vector<cohort::key_value>(131072, {"k", "w"}), soon());
    CHECK(s.get("k", soon()) == "w");
  }
  SUBCASE("awaited") {
    async_store s = over(server);
    s.set("k", "v").wait();
    CHECK(s.num_keys(long_prefix).wait() == 0);
    refused(failure_of([&] { s.multi_set(pairs).wait(); }), "multi_set");
    refused(failure_of([&] { (void)s.multi_get(keys).wait(); }), "multi_get");
    refused(failure_of([&] { s.wait(keys).wait(); }), "wait");
    refused(failure_of([&] { (void)s.check(keys).wait(); }), "wait");
    s.multi_set(std::vector<cohort::key_value>(131072, {"k", "w"})).wait();
    CHECK(s.get("k").wait() == "w");
  }
}
