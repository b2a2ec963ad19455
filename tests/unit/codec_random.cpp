// SPDX-License-Identifier: BSL-1.0
// Random objects of some fifty types: what arrives is what was sent, and every message that is cut or altered is
// refused or decoded, without a crash and without more memory than its size explains.
#include <doctest/doctest.h>

#include "fuzz/codec_target.hpp"
#include "support/object_bytes.hpp"
#include "support/random_objects.hpp"
#include "support/sanitizer.hpp"
#include "support/tracking_allocator.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace cohort;
using harness::random_source;
using harness::tracked_memory;
using harness::tracking_allocator;
using harness::value_bytes;
using harness::value_of;

/// How many of `all` are gone through: what is thrown and caught costs most under a sanitizer.
constexpr int cases(int all) { return harness::sanitized ? (all + 3) / 4 : all; }

template <class F>
void for_each_type(const F& f) {
  [&]<class... Ts>(std::type_identity<std::tuple<Ts...>>) {
    (f(std::type_identity<Ts>()), ...);
  }(std::type_identity<fuzz::codec_types>());
}

template <class T>
inline constexpr bool holds_pointers = false;
template <class Key>
inline constexpr bool holds_pointers<std::map<Key, objects::boxed<std::unique_ptr<std::string>>>> = true;

/// Those whose elements have no order are compared as sorted bytes: all the same bytes in another order.
std::vector<std::byte> sorted(std::vector<std::byte> bytes) {
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

// Every container that a message can grow, with an allocator that counts.
template <class T>
using vector = std::vector<T, tracking_allocator<T>>;
using string = std::basic_string<char, std::char_traits<char>, tracking_allocator<char>>;
template <class K, class V>
using map = std::map<K, V, std::less<>, tracking_allocator<std::pair<const K, V>>>;
template <class K, class V>
using hash_map = std::unordered_map<K, V, std::hash<K>, std::equal_to<>, tracking_allocator<std::pair<const K, V>>>;
struct node {
  int value = 0;
  vector<node> children{};
  std::optional<string> name{};
};
struct everything {
  vector<string> texts{};
  map<int, vector<double>> table{};
  hash_map<short, string> other{};
  std::list<char, tracking_allocator<char>> letters{};
  std::set<int, std::less<>, tracking_allocator<int>> numbers{};
  vector<bool> bits{};
  vector<std::variant<int, string, vector<short>>> choices{};
  node root{};
  vector<std::optional<std::array<double, 50>>> large{};
};

/// An empty element of `large` takes one byte of a message, and while a vector grows it has room for it twice more.
constexpr std::size_t most_per_byte = 3 * sizeof(decltype(everything::large)::value_type);

/// Decodes, whatever comes of it.
/// Result: whether it was an object
template <class T>
bool survives(std::span<const std::byte> bytes) {
  tracked_memory = {};
  bool decoded = false;
  try {
    static_cast<void>(value_of<T>(bytes));
    decoded = true;
  } catch (const error& e) {
    if (e.condition() != errc::bad_message && e.condition() != errc::limit_exceeded) FAIL(e.what());
  }
  if (tracked_memory.now != 0) FAIL("memory was lost");
  if (tracked_memory.peak > most_per_byte * (bytes.size() + 16))
    FAIL(tracked_memory.peak << " bytes for a message of " << bytes.size());
  return decoded;
}

}  // namespace

TEST_CASE("codec: random objects arrive as they were sent") {
  random_source random(1);
  for_each_type([&]<class T>(std::type_identity<T>) {
    CAPTURE(object_type_name<T>());
    for (int i = 0; i < cases(40); ++i) {
      const auto sent = random.make<T>();
      const auto bytes = value_bytes(sent);
      const auto arrived = value_of<T>(bytes);
      REQUIRE(sorted(value_bytes(arrived)) == sorted(bytes));
      if constexpr (requires { sent == arrived; } && !holds_pointers<T>) {
        if (sent == sent) REQUIRE(arrived == sent);  // NaNs differ from themselves
      }
    }
  });
}

TEST_CASE("codec: a message that is cut anywhere is an error") {
  random_source random(2);
  for_each_type([&]<class T>(std::type_identity<T>) {
    CAPTURE(object_type_name<T>());
    for (int i = 0; i < cases(10); ++i) {
      const auto bytes = harness::message_of(random.make<T>());
      for (std::size_t size = 0; size < bytes.size(); ++size) {
        bool refused = false;
        try {
          static_cast<void>(decode_objects<T>(std::span(bytes).first(size)));
        } catch (const error& e) {
          refused = e.condition() == errc::bad_message;
        }
        if (!refused) FAIL("cut at byte " << size << " of " << bytes.size());
      }
    }
  });
}

TEST_CASE("codec: a message with any bit turned over, or any byte another, is decoded or refused") {
  random_source random(3);
  for_each_type([&]<class T>(std::type_identity<T>) {
    CAPTURE(object_type_name<T>());
    for (int i = 0; i < cases(5); ++i) {
      auto bytes = value_bytes(random.make<T>());
      REQUIRE(fuzz::decode_as<T>(bytes));
      for (std::size_t at = 0; at < std::min<std::size_t>(bytes.size(), 200); ++at) {
        const std::byte original = bytes[at];
        for (unsigned bit = 0; bit < 8; ++bit) {
          bytes[at] = original ^ static_cast<std::byte>(1U << bit);
          fuzz::decode_as<T>(bytes);
        }
        for (const unsigned other : {0x00U, 0x7fU, 0x80U, 0xffU}) {
          bytes[at] = static_cast<std::byte>(other);
          fuzz::decode_as<T>(bytes);
        }
        bytes[at] = original;
      }
    }
  });
}

TEST_CASE("codec: random bytes are decoded or refused") {
  random_source random(4);
  int decoded = 0;
  for_each_type([&]<class T>(std::type_identity<T>) {
    std::vector<std::byte> bytes;
    for (int i = 0; i < cases(400); ++i) {
      bytes.resize(random.below(40));
      for (std::byte& b : bytes) b = static_cast<std::byte>(random.below(3) == 0 ? random.bits() : random.below(3));
      if (fuzz::decode_as<T>(bytes)) ++decoded;
    }
  });
  CHECK(decoded > cases(100));
}

TEST_CASE("codec: no altered message makes its reader allocate more than a multiple of its size") {
  everything sample;
  sample.texts = {"one", "two", "a text that is too long to be stored without an allocation"};
  sample.table = {{1, {1, 2, 3}}, {2, {}}};
  sample.other = {{1, "x"}, {2, "another text that is too long to be stored in place"}};
  sample.letters = {'a', 'b', 'c'};
  sample.numbers = {3, 1, 2};
  sample.bits = {true, false, true};
  sample.choices = {1, string("x"), vector<short>{1, 2, 3}};
  sample.root = {1, {{2, {}, "x"}, {3, {{4, {}, {}}}, {}}}, "root"};
  sample.large.resize(40);
  auto bytes = value_bytes(sample);
  REQUIRE(survives<everything>(bytes));
  int decoded = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    CHECK_FALSE(survives<everything>(std::span(bytes).first(at)));
    const std::byte original = bytes[at];
    for (unsigned other = 0; other < 256; ++other) {
      bytes[at] = static_cast<std::byte>(other);
      if (survives<everything>(bytes)) ++decoded;
    }
    bytes[at] = original;
  }
  CHECK(decoded > 256);
}
