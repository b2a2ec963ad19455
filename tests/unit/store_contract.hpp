// SPDX-License-Identifier: BSL-1.0
// What every store must do, as one function that the tests of each store call with handles to the same table.
#pragma once

#include <doctest/doctest.h>

#include <cohort/store.hpp>

#include <chrono>
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
  check_across_handles(fresh());
}

}  // namespace store_test
