// SPDX-License-Identifier: BSL-1.0
// The pure parts of queues: what a table counts and refuses, who stands in line at a server's desk, and what becomes of
// items whose receiver is gone.
#include <doctest/doctest.h>

#include <cohort/store/desk.hpp>
#include <cohort/store/table.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store_contract.hpp"

namespace {

using cohort::errc;
using cohort::detail::request_body;
using cohort::detail::store_call;
using cohort::detail::store_desk;
using cohort::detail::store_table;
using store_test::failure;
using store_test::failure_of;

constexpr std::uint32_t failed = static_cast<std::uint32_t>(errc::store_failed);

/// A desk, and what it has said since it was last asked.
struct counter {
  store_desk desk;
  store_desk::answers said{};
  std::uint64_t last = 0;

  explicit counter(const cohort::store_limits& limits = {}) : desk(limits) {}
  std::uint64_t ask(store_call call, std::string_view key, std::string_view value = {}) {
    request_body body;
    body.key = key;
    body.value = value;
    desk.serve(
        ++last, call, body, [](std::size_t) {}, said);
    return last;
  }
  std::uint64_t ask_for(store_call call, std::vector<std::string> keys) {
    request_body body;
    body.keys = std::move(keys);
    desk.serve(
        ++last, call, body, [](std::size_t) {}, said);
    return last;
  }
  void give_back(const std::vector<std::uint64_t>& tickets) { desk.give_back(tickets, said); }
  /// "5=item 6!error" for answers to tickets 5 and 6, in the order in which they were given.
  std::string heard() {
    std::string all;
    for (const store_desk::answer& a : said) {
      all += (all.empty() ? "" : " ") + std::to_string(a.who) + (a.status == 0 ? "=" : "!");
      all += a.status != 0 ? std::to_string(a.status) : a.body == nullptr ? "" : *a.body;
    }
    said.clear();
    return all;
  }
};

}  // namespace

TEST_CASE("store: a queue's items count against the limits, empty ones too") {
  cohort::store_limits small;
  small.keys = 2;
  small.bytes = 300;
  store_table table(small);
  table.push("q", "12345");
  CHECK(table.bytes() == 1 + 5 + store_table::item_cost);
  table.push("q", "");
  table.push("q", "");
  table.push("q", "");
  CHECK(table.bytes() == 1 + 5 + 4 * store_table::item_cost);
  const failure full = failure_of([&] { table.push("q", ""); });
  CHECK(full.code == errc::store_failed);
  CHECK(full.text == "queue_push: \"q\" would fill the store to 326 bytes, the limit is 300");
  table.set("v", "");
  CHECK(failure_of([&] { table.push("other", ""); }).text ==
        "queue_push: the store holds 2 keys, which is its limit; \"other\" is one too many");
  CHECK(failure_of([&] { (void)table.append("other", ""); }).says("append: the store holds 2 keys"));
  const std::vector<cohort::key_value> two{{"v", "1"}, {"x", "2"}, {"y", "3"}};
  table.erase("v");
  CHECK(failure_of([&] { table.multi_set(two); }).text ==
        "multi_set: the store holds 1 keys and this call brings more, the limit is 2; \"x\" is one too many");
  CHECK(table.count("") == 1);
  while (table.pop("q") != nullptr) continue;
  CHECK(table.bytes() == 0);
  CHECK(table.count("") == 0);
  table.push("q", "again");
  table.push("q", "and again");
  CHECK(table.erase("q"));
  CHECK(table.bytes() == 0);
}

TEST_CASE("store: an item on its way is counted and keeps its queue a queue; deletion ends both") {
  store_table table{cohort::store_limits{}};
  table.push("q", "one");
  table.push("q", "two");
  const auto one = table.lend("q");
  const auto two = table.lend("q");
  REQUIRE((one && two));
  CHECK_FALSE(table.lend("q").has_value());
  CHECK_FALSE(table.exists("q"));
  CHECK(table.count("") == 0);
  CHECK(table.bytes() == 1 + 6 + 2 * store_table::item_cost);
  CHECK(failure_of([&] { table.set("q", "x"); }).says("holds a queue of 0 items, expected a value"));
  CHECK(table.give_back(*two));
  CHECK(table.give_back(*one));
  CHECK(*table.pop("q") == "one");
  const auto again = table.lend("q");
  table.settle(*again);
  CHECK(table.bytes() == 0);
  table.set("q", "a value");
  table.erase("q");

  table.push("q", "three");
  const auto three = table.lend("q");
  CHECK_FALSE(table.erase("q"));  // it had no items, and the one on its way will not come back
  CHECK(table.bytes() == 0);
  table.push("q", "of another queue");
  CHECK_FALSE(table.give_back(*three));
  table.settle(*three);
  CHECK(table.queue_size("q") == 1);
  CHECK(table.bytes() == 1 + 16 + store_table::item_cost);
}

TEST_CASE("store: a value that is appended to leaves what readers hold as it was") {
  store_table table{cohort::store_limits{}};
  table.append("k", "one");
  const auto held = table.share("k");
  table.append("k", ",two");
  CHECK(*held == "one");
  CHECK(*table.find("k") == "one,two");
  CHECK(table.bytes() == 1 + 7);
}

TEST_CASE("store: first come, first served, and a push wakes one") {
  counter c;
  for (int i = 0; i < 3; ++i) c.ask(store_call::queue_pop, "q");  // tickets 1, 2, 3
  c.ask(store_call::queue_pop, "other");
  CHECK(c.heard().empty());
  c.ask(store_call::queue_push, "q", "a");
  CHECK(c.heard() == "5= 1=a");
  c.desk.leave(2);
  c.ask(store_call::queue_push, "q", "b");
  CHECK(c.heard() == "6= 3=b");
  c.ask(store_call::queue_push, "q", "c");
  CHECK(c.heard() == "7=");
  c.ask(store_call::try_queue_pop, "q");
  CHECK(c.heard() == "8=+c");
  c.ask(store_call::try_queue_pop, "q");
  CHECK(c.heard() == "9=");
  c.desk.give_up(4, c.said);
  CHECK(c.heard() == "4!" + std::to_string(static_cast<std::uint32_t>(errc::timed_out)));
  c.ask(store_call::queue_push, "other", "kept");
  c.ask(store_call::queue_len, "other");
  CHECK(c.heard() == std::string("10= 11=\x01\0\0\0\0\0\0\0", 15));
}

TEST_CASE("store: what does not arrive goes back to the front in its order, or to the next in line") {
  counter c;
  for (const char* item : {"a", "b", "c"}) c.ask(store_call::queue_push, "q", item);
  c.heard();
  c.ask(store_call::queue_pop, "q");      // 4 gets a
  c.ask(store_call::try_queue_pop, "q");  // 5 gets b
  c.heard();
  c.give_back({4, 5});
  CHECK(c.heard().empty());
  CHECK(c.desk.table().queue_size("q") == 3);
  for (int i = 0; i < 3; ++i) c.ask(store_call::queue_pop, "q");  // 6, 7, 8
  CHECK(c.heard() == "6=a 7=b 8=c");
  c.desk.confirm(6);
  c.ask(store_call::queue_pop, "q");  // 9
  c.ask(store_call::queue_pop, "q");  // 10
  c.give_back({6, 7, 8});             // 6 has said that it has it
  CHECK(c.heard() == "9=b 10=c");
  c.give_back({7, 8});  // they are others' now
  CHECK(c.heard().empty());
  c.desk.confirm(9);
  c.desk.confirm(10);
  CHECK(c.desk.table().bytes() == 0);
}

TEST_CASE("store: a wait hears of a queue's item before the first in line has it") {
  counter c;
  c.ask(store_call::queue_pop, "q");
  c.ask_for(store_call::wait, {"q"});
  c.ask(store_call::queue_push, "q", "x");
  CHECK(c.heard() == "3= 2= 1=x");
}

TEST_CASE("store: a key that comes as the other kind is an error for all who wait for it") {
  counter c;
  c.ask(store_call::queue_pop, "k");
  c.ask(store_call::queue_pop, "k");
  c.ask(store_call::set, "k", "value");
  REQUIRE(c.said.size() == 3);
  CHECK(c.said[1].who == 1);
  CHECK(c.said[1].status == failed);
  CHECK(*c.said[1].body ==
        "queue_pop: key \"k\" holds a value of 5 bytes, expected a queue; use get, or delete_key first");
  CHECK(c.said[2].who == 2);
  CHECK(c.said[2].status == failed);
  c.said.clear();
  c.ask(store_call::get, "q");
  c.ask_for(store_call::multi_get, {"k", "q"});
  c.ask(store_call::queue_push, "q", "item");
  REQUIRE(c.said.size() == 3);
  CHECK(*c.said[1].body ==
        "get: key \"q\" holds a queue of 1 items, expected a value; use queue_pop, or delete_key first");
  CHECK(c.said[2].body->starts_with("multi_get: key \"q\" holds a queue"));
  CHECK(c.desk.table().queue_size("q") == 1);
}

TEST_CASE("store: several keys set in one step wake a reader of all of them once") {
  counter c;
  c.ask_for(store_call::multi_get, {"a", "b"});
  request_body body;
  body.pairs = {{"a", "1"}, {"b", "2"}};
  c.desk.serve(
      ++c.last, store_call::multi_set, body, [](std::size_t) {}, c.said);
  REQUIRE(c.said.size() == 2);
  const auto values = cohort::detail::decode_values(*c.said[1].body, 2, {});
  REQUIRE(values.has_value());
  CHECK(*values == std::vector<std::string>{"1", "2"});
  for (std::size_t n = 0; n < c.said[1].body->size(); ++n) {
    CHECK_FALSE(cohort::detail::decode_values(std::string_view(*c.said[1].body).substr(0, n), 2, {}).has_value());
  }
  CHECK_FALSE(cohort::detail::decode_values(*c.said[1].body, 1, {}).has_value());
  CHECK_FALSE(cohort::detail::decode_values(*c.said[1].body, 3, {}).has_value());
}
