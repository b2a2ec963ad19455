// SPDX-License-Identifier: BSL-1.0
// What every store must do, as one function that the tests of each store call with handles to the same table.
#pragma once

#include <doctest/doctest.h>

#include <cohort/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace store_test {

using namespace std::chrono_literals;

[[nodiscard]] inline cohort::deadline in(std::chrono::nanoseconds after) { return cohort::deadline_after(after); }
[[nodiscard]] inline cohort::deadline soon() { return in(30s); }  // long enough never to matter

/// The error of a call: its code and its text.
struct failure {
  cohort::errc code{};
  std::string text{};
  [[nodiscard]] bool says(std::string_view part) const { return text.find(part) != std::string::npos; }
};
template <class Call>
[[nodiscard]] failure failure_of(const Call& call) {
  try {
    call();
  } catch (const cohort::error& e) {
    return {e.condition(), e.what()};
  }
  return {cohort::errc{}, "no error"};
}

template <cohort::store S>
void check_values(S& s) {
  s.set("a", "1", soon());
  CHECK(s.get("a", soon()) == "1");
  s.set("a", "two", soon());
  CHECK(s.get("a", soon()) == "two");
  s.set("empty", "", soon());
  CHECK(s.get("empty", soon()).empty());
  CHECK(s.try_get("empty", soon()) == "");
  CHECK(s.try_get("absent", soon()) == std::nullopt);
  const std::string binary("\0\xff\n k", 5);
  s.set(binary, binary, soon());
  CHECK(s.get(binary, soon()) == binary);
  // What can be answered at once is answered, however late it is.
  CHECK(s.get("a", in(0s)) == "two");
  CHECK(s.wait_until(std::vector<std::string>{"a", "empty"}, in(-1s)).empty());

  CHECK(s.num_keys("", soon()) == 3);
  CHECK(s.num_keys("em", soon()) == 1);
  CHECK(s.num_keys("x", soon()) == 0);
  CHECK(s.delete_key("empty", soon()));
  CHECK_FALSE(s.delete_key("empty", soon()));
  CHECK(s.delete_key(binary, soon()));
  CHECK(s.num_keys("", soon()) == 1);
}

template <cohort::store S>
void check_counters(S& s) {
  CHECK(s.add("n", 5, soon()) == 5);
  CHECK(s.add("n", -7, soon()) == -2);
  CHECK(s.get("n", soon()) == "-2");
  CHECK(s.add("n", 0, soon()) == -2);
  s.set("text", "v", soon());
  const failure no_integer = failure_of([&] { s.add("text", 1, soon()); });
  CHECK(no_integer.code == cohort::errc::store_failed);
  CHECK(no_integer.says("text\" holds \"v\", which is no integer"));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(s.add("big", most, soon()) == most);
  const failure overflow = failure_of([&] { s.add("big", 1, soon()); });
  CHECK(overflow.code == cohort::errc::store_failed);
  CHECK(overflow.says("big\" holds 9223372036854775807; adding 1 overflows 64 bits"));
  CHECK(s.get("big", soon()) == "9223372036854775807");
}

template <cohort::store S>
void check_compare_set(S& s) {
  CHECK(s.compare_set("c", "", "first", soon()) == "first");
  CHECK(s.compare_set("c", "", "second", soon()) == "first");
  CHECK(s.compare_set("c", "wrong", "second", soon()) == "first");
  CHECK(s.compare_set("c", "first", "second", soon()) == "second");
  CHECK(s.get("c", soon()) == "second");
  CHECK(s.compare_set("none", "something", "x", soon()).empty());
  CHECK(s.try_get("none", soon()) == std::nullopt);
}

template <cohort::store S>
void check_waiting(S& s) {
  s.set("here1", "x", soon());
  s.set("here2", "x", soon());
  s.set("here3", "x", soon());
  const std::vector<std::string> five{"here1", "gone1", "here2", "gone2", "here3"};
  const auto started = std::chrono::steady_clock::now();
  const failure late = failure_of([&] { s.wait(five, in(50ms)); });
  CHECK(std::chrono::steady_clock::now() - started >= 50ms);
  CHECK(late.code == cohort::errc::timed_out);
  CHECK(late.says("gone1\", \""));
  CHECK(late.says("gone2\" (2 of 5) after "));
  CHECK(late.says(" in the store "));
  CHECK(s.wait_until(five, in(0s)) == std::vector<std::string>{"gone1", "gone2"});
  const failure no_key = failure_of([&] { (void)s.get("nobody", in(20ms)); });
  CHECK(no_key.code == cohort::errc::timed_out);
  CHECK(no_key.says("get: missing: \""));
  CHECK(no_key.says("nobody\" (1 of 1)"));

  CHECK(s.check(std::vector<std::string>{"here1", "here2"}, soon()));
  CHECK_FALSE(s.check(five, soon()));
  CHECK(s.check(std::vector<std::string>{}, soon()));
  s.wait(std::vector<std::string>{}, in(0s));
  s.wait(std::vector<std::string>{"here1", "here1"}, soon());
}

template <cohort::store S>
void check_limits(S& s) {
  const std::string longest(1000, 'k');  // a prefix_store's prefix must fit too
  s.set(longest, "v", soon());
  CHECK(s.get(longest, soon()) == "v");
  const std::string too_long(1025, 'k');
  const failure long_key = failure_of([&] { s.set(too_long, "v", soon()); });
  CHECK(long_key.code == cohort::errc::store_failed);
  CHECK(long_key.says(" bytes, the limit is 1024"));
  CHECK(failure_of([&] { s.set("", "v", soon()); }).says("set: the key is empty, expected 1..1024 bytes"));
  CHECK(failure_of([&] { (void)s.get("", soon()); }).says("get: the key is empty"));
  CHECK(failure_of([&] { s.add("", 1, soon()); }).says("add: the key is empty"));
  CHECK(failure_of([&] { (void)s.wait_until(std::vector<std::string>{""}, soon()); }).says("wait: the key is empty"));

  const std::string largest(std::size_t{8} << 20, 'v');
  s.set("large", largest, soon());
  CHECK(s.get("large", soon()) == largest);
  CHECK(s.try_get("large", soon()) == largest);
  CHECK(s.compare_set("large", largest, "small", soon()) == "small");
  const failure large = failure_of([&] { s.set("large", largest + "v", soon()); });
  CHECK(large.code == cohort::errc::store_failed);
  CHECK(large.says("a value of 8388609 bytes for \""));
  CHECK(large.says("the limit is 8388608"));
  CHECK(s.get("large", soon()) == "small");
}

template <cohort::store S>
void check_several(S& s) {
  CHECK(s.append("log", "one", soon()) == 3);
  CHECK(s.append("log", ",two", soon()) == 7);
  CHECK(s.append("log", "", soon()) == 7);
  CHECK(s.get("log", soon()) == "one,two");
  CHECK(s.append("none", "", soon()) == 0);
  CHECK(s.get("none", soon()).empty());  // it exists now
  s.add("sum", 4, soon());
  CHECK(s.append("sum", "2", soon()) == 2);
  CHECK(s.add("sum", 1, soon()) == 43);
  s.delete_key("sum", soon());

  const std::vector<cohort::key_value> pairs{{"a", "1"}, {"b", std::string("\0\xff", 2)}, {"a", "2"}, {"c", ""}};
  s.multi_set(pairs, soon());
  const std::vector<std::string> names{"b", "a", "c", "a"};
  const std::vector<std::string> values{std::string("\0\xff", 2), "2", "", "2"};
  CHECK(s.multi_get(names, soon()) == values);
  CHECK(s.multi_get(names, in(-1s)) == values);  // however late it is
  CHECK(s.multi_get(std::vector<std::string>{}, in(0s)).empty());
  s.multi_set(std::vector<cohort::key_value>{}, soon());
  CHECK(s.num_keys("", soon()) == 5);
  const failure late = failure_of([&] { (void)s.multi_get(std::vector<std::string>{"a", "x", "b", "y"}, in(20ms)); });
  CHECK(late.code == cohort::errc::timed_out);
  CHECK(late.says("multi_get: missing: \""));
  CHECK(late.says("y\" (2 of 4) after "));

  // All or nothing.
  const std::vector<cohort::key_value> bad{{"fresh", "1"}, {std::string(1025, 'k'), "2"}};
  CHECK(failure_of([&] { s.multi_set(bad, soon()); }).says(" bytes, the limit is 1024"));
  CHECK(s.try_get("fresh", soon()) == std::nullopt);
  CHECK(failure_of([&] {
          s.multi_set(std::vector<cohort::key_value>{{"", "1"}}, soon());
        }).says("multi_set: the key is empty"));
  CHECK(
      failure_of([&] { (void)s.multi_get(std::vector<std::string>{""}, soon()); }).says("multi_get: the key is empty"));
  CHECK(failure_of([&] { s.append("", "x", soon()); }).says("append: the key is empty"));
}

template <cohort::store S>
void check_several_limits(S& s) {
  const std::string half(std::size_t{5} << 20, 'h');
  s.multi_set(std::vector<cohort::key_value>{{"h1", half}, {"h2", half}, {"h3", half}}, soon());
  CHECK(s.multi_get(std::vector<std::string>{"h3"}, soon()).front() == half);
  const failure much = failure_of([&] { (void)s.multi_get(std::vector<std::string>{"h1", "h2"}, soon()); });
  CHECK(much.code == cohort::errc::store_failed);
  CHECK(much.text ==
        "multi_get: 2 keys hold 10485760 bytes together, the limit for one call is 8388608; use several calls");
  const failure more = failure_of([&] {
    s.multi_set(std::vector<cohort::key_value>{{"h1", half}, {"h2", half}, {"h3", half}, {"h4", half}}, soon());
  });
  CHECK(more.code == cohort::errc::store_failed);
  CHECK(more.says("multi_set: 4 keys and values of "));
  CHECK(more.says(" bytes, the limit for one call is 16777216; use several calls"));
  const failure long_one = failure_of([&] { s.append("h1", half, soon()); });
  CHECK(long_one.code == cohort::errc::store_failed);
  CHECK(long_one.says("append: 5242880 bytes to the 5242880 of \""));
  CHECK(long_one.says("h1\", the limit is 8388608"));
  CHECK(s.get("h1", soon()).size() == half.size());
  CHECK(failure_of([&] { s.queue_push("q", half + half, soon()); }).says("queue_push: a value of 10485760 bytes for"));
}

template <cohort::store S>
void check_queue(S& s) {
  CHECK(s.queue_len("q", soon()) == 0);
  CHECK(s.try_queue_pop("q", soon()) == std::nullopt);
  s.queue_push("q", "first", soon());
  s.queue_push("q", "", soon());
  s.queue_push("q", std::string("\0\xff", 2), soon());
  CHECK(s.queue_len("q", soon()) == 3);
  CHECK(s.check(std::vector<std::string>{"q"}, soon()));
  CHECK(s.num_keys("", soon()) == 1);
  CHECK(s.wait_until(std::vector<std::string>{"q"}, in(0s)).empty());
  CHECK(s.queue_pop("q", soon()) == "first");
  CHECK(s.try_queue_pop("q", soon()) == "");
  CHECK(s.queue_pop("q", in(-1s)) == std::string("\0\xff", 2));  // what is there is given, however late it is
  CHECK(s.queue_len("q", soon()) == 0);
  // An empty queue is an absent key.
  CHECK_FALSE(s.check(std::vector<std::string>{"q"}, soon()));
  CHECK(s.num_keys("", soon()) == 0);
  CHECK_FALSE(s.delete_key("q", soon()));
  const failure late = failure_of([&] { (void)s.queue_pop("q", in(20ms)); });
  CHECK(late.code == cohort::errc::timed_out);
  CHECK(late.says("queue_pop: no item for \""));
  CHECK(late.says("q\" came within "));
  CHECK(late.says(" in the store "));
  s.set("q", "a value now", soon());
  CHECK(s.delete_key("q", soon()));
  s.queue_push("q", "dropped", soon());
  CHECK(s.delete_key("q", soon()));
  CHECK(s.queue_len("q", soon()) == 0);
}

template <cohort::store S>
void check_kinds(S& s) {
  s.queue_push("q", "item", soon());
  s.queue_push("q", "item", soon());
  s.set("v", "value", soon());
  const std::vector<std::string> q{"q"};
  const auto wants_value = [&](const std::string& call, const auto& body) {
    CAPTURE(call);
    const failure f = failure_of(body);
    CHECK(f.code == cohort::errc::store_failed);
    CHECK(f.text.starts_with(call + ": key \""));
    CHECK(f.says("q\" holds a queue of 2 items, expected a value; use queue_pop, or delete_key first"));
  };
  wants_value("set", [&] { s.set("q", "x", soon()); });
  wants_value("get", [&] { (void)s.get("q", soon()); });
  wants_value("try_get", [&] { (void)s.try_get("q", soon()); });
  wants_value("add", [&] { s.add("q", 1, soon()); });
  wants_value("append", [&] { s.append("q", "x", soon()); });
  wants_value("compare_set", [&] { s.compare_set("q", "", "x", soon()); });
  wants_value("multi_get", [&] { (void)s.multi_get(q, soon()); });
  wants_value("multi_set", [&] { s.multi_set(std::vector<cohort::key_value>{{"n", "1"}, {"q", "x"}}, soon()); });
  CHECK(s.try_get("n", soon()) == std::nullopt);
  const auto wants_queue = [&](const std::string& call, const auto& body) {
    CAPTURE(call);
    const failure f = failure_of(body);
    CHECK(f.code == cohort::errc::store_failed);
    CHECK(f.text.starts_with(call + ": key \""));
    CHECK(f.says("v\" holds a value of 5 bytes, expected a queue; use get, or delete_key first"));
  };
  wants_queue("queue_push", [&] { s.queue_push("v", "x", soon()); });
  wants_queue("queue_pop", [&] { (void)s.queue_pop("v", soon()); });
  wants_queue("try_queue_pop", [&] { (void)s.try_queue_pop("v", soon()); });
  wants_queue("queue_len", [&] { (void)s.queue_len("v", soon()); });
  CHECK(failure_of([&] { s.queue_push("", "x", soon()); }).says("queue_push: the key is empty"));
  CHECK(failure_of([&] { (void)s.queue_pop("", soon()); }).says("queue_pop: the key is empty"));
  CHECK(s.queue_len("q", soon()) == 2);
  CHECK(s.get("v", soon()) == "value");
}

/// Threads that wait while others bring what they wait for.
template <class Make>
void check_queue_across_handles(const Make& make) {
  auto mine = make();
  constexpr int consumers = 3;
  constexpr int items = 60;
  std::vector<std::vector<int>> got(consumers);
  std::vector<std::thread> threads;
  for (int c = 0; c < consumers; ++c) {
    threads.emplace_back([&make, &mine_got = got[static_cast<std::size_t>(c)]] {
      auto theirs = make();
      for (;;) {
        const int item = std::stoi(theirs.queue_pop("work", soon()));
        if (item < 0) return;
        mine_got.push_back(item);
      }
    });
  }
  for (int i = 0; i < items; ++i) mine.queue_push("work", std::to_string(i), soon());
  for (int c = 0; c < consumers; ++c) mine.queue_push("work", "-1", soon());
  for (std::thread& t : threads) t.join();
  std::vector<int> all;
  for (const std::vector<int>& each : got) {
    CHECK(std::is_sorted(each.begin(), each.end()));  // first in, first out
    all.insert(all.end(), each.begin(), each.end());
  }
  std::sort(all.begin(), all.end());
  REQUIRE(all.size() == items);
  for (int i = 0; i < items; ++i) CHECK(all[static_cast<std::size_t>(i)] == i);
  CHECK(mine.queue_len("work", soon()) == 0);

  // What comes is of the other kind: whoever waits is told at once.
  const auto kind_error = [&](const auto& wait, const auto& bring) {
    failure seen;
    std::thread waiter([&] {
      auto theirs = make();
      theirs.set("ready", "", soon());
      seen = failure_of([&] { wait(theirs); });
    });
    mine.wait(std::vector<std::string>{"ready"}, soon());
    mine.delete_key("ready", soon());
    bring();  // before or after the waiter waits: it is the same error
    waiter.join();
    CHECK(seen.code == cohort::errc::store_failed);
    return seen.text;
  };
  CHECK(kind_error([](auto& s) { (void)s.get("k1", soon()); }, [&] { mine.queue_push("k1", "x", soon()); })
            .find("k1\" holds a queue of 1 items, expected a value") != std::string::npos);
  CHECK(kind_error([](auto& s) { (void)s.queue_pop("k2", soon()); }, [&] { mine.set("k2", "x", soon()); })
            .find("k2\" holds a value of 1 bytes, expected a queue") != std::string::npos);

  std::thread reader([&make] {
    auto theirs = make();
    theirs.set("reading", "", soon());
    CHECK(theirs.multi_get(std::vector<std::string>{"m1", "m2", "m3"}, soon()) ==
          std::vector<std::string>{"1", "2", "3"});
  });
  mine.wait(std::vector<std::string>{"reading"}, soon());
  mine.set("m2", "2", soon());
  mine.multi_set(std::vector<cohort::key_value>{{"m1", "1"}, {"m3", "3"}}, soon());
  reader.join();

  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&make, t] {
      auto theirs = make();
      for (int i = 0; i < 30; ++i) theirs.append("letters", std::string(1, static_cast<char>('a' + t)), soon());
    });
  }
  for (std::thread& t : writers) t.join();
  const std::string letters = mine.get("letters", soon());
  for (const char c : {'a', 'b', 'c'}) CHECK(std::count(letters.begin(), letters.end(), c) == 30);
}

/// `make()` gives a new handle to the table each time, for a thread of its own.
template <class Make>
void check_across_handles(const Make& make) {
  auto mine = make();
  std::thread setter([&] {
    auto theirs = make();
    theirs.wait(std::vector<std::string>{"go"}, soon());
    theirs.set("answer", "42", soon());
    theirs.set("w1", "", soon());
    theirs.delete_key("w1", soon());
    theirs.set("w2", "", soon());
    theirs.wait(std::vector<std::string>{"again"}, soon());
    theirs.set("w1", "", soon());
  });
  mine.set("go", "", soon());
  CHECK(mine.get("answer", soon()) == "42");
  CHECK(mine.wait_until(std::vector<std::string>{"w2"}, soon()).empty());
  // w1 came and went before: a wait is for all keys at once.
  CHECK(mine.wait_until(std::vector<std::string>{"w1", "w2"}, in(30ms)) == std::vector<std::string>{"w1"});
  mine.set("again", "", soon());
  CHECK(mine.wait_until(std::vector<std::string>{"w1", "w2"}, soon()).empty());
  setter.join();

  constexpr int threads = 4;
  constexpr int rounds = 50;
  std::vector<std::thread> adders;
  for (int t = 0; t < threads; ++t) {
    adders.emplace_back([&make] {
      auto theirs = make();
      for (int i = 0; i < rounds; ++i) theirs.add("sum", 1, soon());
    });
  }
  for (std::thread& t : adders) t.join();
  CHECK(mine.add("sum", 0, soon()) == threads * rounds);

  // Of all who want to be the first, one is.
  std::vector<std::string> seen(threads);
  std::vector<std::thread> rivals;
  for (int t = 0; t < threads; ++t) {
    rivals.emplace_back([&make, &seen, t] {
      auto theirs = make();
      seen[static_cast<std::size_t>(t)] = theirs.compare_set("crown", "", std::to_string(t), soon());
    });
  }
  for (std::thread& t : rivals) t.join();
  for (const std::string& s : seen) CHECK(s == mine.get("crown", soon()));
}

/// All of it, each part with an empty table: `fresh()` gives a function that makes handles to a new one.
template <class Fresh>
void check_store(const Fresh& fresh) {
  const auto each = [&](const auto& part) {
    const auto make = fresh();
    auto s = make();
    part(s);
  };
  each([](auto& s) { check_values(s); });
  each([](auto& s) { check_counters(s); });
  each([](auto& s) { check_compare_set(s); });
  each([](auto& s) { check_waiting(s); });
  each([](auto& s) { check_limits(s); });
  each([](auto& s) { check_several(s); });
  each([](auto& s) { check_several_limits(s); });
  each([](auto& s) { check_queue(s); });
  each([](auto& s) { check_kinds(s); });
  check_across_handles(fresh());
  check_queue_across_handles(fresh());
}

}  // namespace store_test
