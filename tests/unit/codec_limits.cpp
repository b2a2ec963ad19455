// SPDX-License-Identifier: BSL-1.0
// No count, depth or size that a message states is believed beyond what its bytes and the limits allow.
#include <doctest/doctest.h>

#include <cohort/codec.hpp>

#include "support/object_bytes.hpp"
#include "support/object_types.hpp"
#include "support/tracking_allocator.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

using namespace cohort;
using harness::error_of;
using harness::error_of_value;
using harness::tracked_memory;
using harness::tracking_allocator;
using harness::unhex;
using harness::value_bytes;
using harness::value_of;

template <class T>
using tracked_vector = std::vector<T, tracking_allocator<T>>;
template <class T>
using tracked_list = std::list<T, tracking_allocator<T>>;
using tracked_string = std::basic_string<char, std::char_traits<char>, tracking_allocator<char>>;
using tracked_map = std::map<int, int, std::less<>, tracking_allocator<std::pair<const int, int>>>;
using tracked_hash_map =
    std::unordered_map<int, int, std::hash<int>, std::equal_to<>, tracking_allocator<std::pair<const int, int>>>;

objects::tree deep_tree(int depth) {
  objects::tree t{depth, {}};
  for (int i = 1; i < depth; ++i) {
    objects::tree parent{i, {}};
    parent.children.push_back(std::move(t));
    t = std::move(parent);
  }
  return t;
}

/// The counts 2^7, 2^14, ... 2^63 and the largest that the limits allow, each followed by the bytes of a few elements.
template <class T>
void refuses_large_counts() {
  const std::string filler(64, '0');
  for (const char* count : {"8001", "808001", "80808001", "808080800f", "80808080808001", "80808080808080808001",
                            "80808080"
                            "01",
                            "ffffff7f"}) {
    tracked_memory = {};
    const std::string text = error_of_value<T>(count + filler);
    CHECK_FALSE(text.empty());
    CHECK(tracked_memory.peak == 0);
    CHECK(tracked_memory.now == 0);
  }
}

}  // namespace

TEST_CASE("codec: a count is checked against the bytes that remain before anything is allocated") {
  refuses_large_counts<tracked_string>();
  refuses_large_counts<tracked_vector<char>>();
  refuses_large_counts<tracked_vector<double>>();
  refuses_large_counts<tracked_vector<tracked_string>>();
  refuses_large_counts<tracked_vector<std::monostate>>();
  refuses_large_counts<tracked_vector<objects::nothing>>();
  refuses_large_counts<tracked_vector<std::tuple<>>>();
  refuses_large_counts<tracked_vector<std::array<int, 0>>>();
  refuses_large_counts<tracked_vector<objects::person>>();
  refuses_large_counts<tracked_vector<objects::even>>();
  refuses_large_counts<tracked_list<char>>();
  refuses_large_counts<std::deque<char>>();
  refuses_large_counts<std::forward_list<char>>();
  refuses_large_counts<tracked_map>();
  refuses_large_counts<tracked_hash_map>();
  CHECK(error_of_value<std::vector<double>>("0300000000000000000000000000000000") ==
        "malformed object message: expected 3 elements of at least 8 bytes, found 16 bytes, at byte 1 of 17");
  CHECK(error_of_value<std::map<std::int32_t, std::string>>("02000000000000000000") ==
        "malformed object message: expected 2 elements of at least 5 bytes, found 9 bytes, at byte 1 of 10");
}

TEST_CASE("codec: empty objects take a byte each, so that none can be counted without end") {
  CHECK(value_bytes(std::vector<std::monostate>(5)).size() == 6);
  CHECK(value_bytes(std::vector<objects::nothing>(5)).size() == 6);
  CHECK(value_bytes(std::vector<std::tuple<>>(5)).size() == 6);
  CHECK(value_bytes(std::vector<std::array<int, 0>>(5)).size() == 6);
  CHECK(value_bytes(std::vector<std::bitset<0>>(5)).size() == 6);
  // 2^40 of them
  CHECK(error_of_value<std::vector<std::monostate>>("808080808020")
            .starts_with("object exceeds the codec's limits: a container of 1099511627776 elements"));
}

TEST_CASE("codec: the limit on bytes holds for both sides") {
  codec_limits limits;
  limits.bytes = 64;
  CHECK(error_of([&] { static_cast<void>(value_bytes(std::string(64, 'x'), limits)); }) ==
        "object exceeds the codec's limits: the object takes more than 64 bytes, which is codec_limits::bytes");
  CHECK(value_bytes(std::string(63, 'x'), limits).size() == 64);
  CHECK(error_of([&] { static_cast<void>(value_of<std::string>(value_bytes(std::string(64, 'x')), limits)); }) ==
        "object exceeds the codec's limits: a message of 65 bytes: codec_limits::bytes allows 64, at byte 0 of 65");
}

TEST_CASE("codec: the limit on elements holds for both sides") {
  codec_limits limits;
  limits.elements = 3;
  const auto bytes = value_bytes(std::vector<bool>(4));
  CHECK(error_of([&] { static_cast<void>(value_bytes(std::vector<bool>(4), limits)); }) ==
        "object exceeds the codec's limits: a container of 4 elements: codec_limits::elements allows 3");
  CHECK(
      error_of([&] { static_cast<void>(value_of<std::vector<bool>>(bytes, limits)); }) ==
      "object exceeds the codec's limits: a container of 4 elements: codec_limits::elements allows 3, at byte 1 of 2");
  CHECK(error_of([&] {
          static_cast<void>(value_of<std::string>(unhex("0461626364"), limits));
        }).starts_with("object exceeds the codec's limits: a container of 4 elements"));
  CHECK(value_of<std::vector<int>>(value_bytes(std::vector<int>(3)), limits).size() == 3);
}

TEST_CASE("codec: the limit on memory bounds small messages of large objects") {
  // An optional takes a byte in the message if it is empty, and all of its room in memory.
  using large = std::optional<std::array<char, 4000>>;
  const auto bytes = value_bytes(std::vector<large>(1000));
  CHECK(bytes.size() == 1002);
  codec_limits limits;
  limits.memory = 1 << 20;
  tracked_memory = {};
  CHECK(error_of([&] { static_cast<void>(value_of<tracked_vector<large>>(bytes, limits)); }) ==
        "object exceeds the codec's limits: 1000 elements of 4001 bytes of memory: codec_limits::memory allows 1048576 "
        "bytes a "
        "message, of which 1048576 are left, at byte 2 of 1002");
  CHECK(tracked_memory.peak == 0);
  // Many small containers add up.
  const auto many = value_bytes(std::vector<std::string>(1000, std::string(2000, 'x')));
  CHECK(error_of([&] {
          static_cast<void>(value_of<std::vector<std::string>>(many, limits));
        }).starts_with("object exceeds the codec's limits: 2000 elements of 1 bytes"));
  // Pointers, too.
  const auto pointers = value_bytes(std::vector<std::optional<std::array<char, 4000>>>(1, std::array<char, 4000>()));
  limits.memory = 3999;
  CHECK_FALSE(error_of([&] {
                static_cast<void>(
                    value_of<std::unique_ptr<std::array<char, 4000>>>(std::span(pointers).subspan(1), limits));
              }).empty());
}

TEST_CASE("codec: the limit on memory counts what an empty deque allocates") {
  codec_limits limits;
  limits.memory = 1 << 20;
  const auto refuses = [&]<class T>(std::type_identity<T>) {
    using deque = std::deque<T, tracking_allocator<T>>;
    tracked_memory = {};
    const auto bytes = value_bytes(std::vector<deque>(10000));
    tracked_memory = {};
    CHECK(error_of([&] {
            static_cast<void>(value_of<std::vector<deque>>(bytes, limits));
          }).starts_with("object exceeds the codec's limits: 1 elements of "));
    CHECK(tracked_memory.peak <= limits.memory);
  };
  refuses(std::type_identity<int>());
  refuses(std::type_identity<std::array<char, 4000>>());
  CHECK(value_of<std::vector<std::deque<int>>>(value_bytes(std::vector<std::deque<int>>(1000)), limits).size() == 1000);
}

TEST_CASE("codec: room is made for what can come, not for what is announced") {
  using large = std::optional<std::array<char, 4000>>;
  std::vector<std::byte> bytes = value_bytes(std::vector<large>(1000));
  bytes[3] = std::byte{7};  // the second element is no bool
  tracked_memory = {};
  CHECK_FALSE(error_of([&] { static_cast<void>(value_of<tracked_vector<large>>(bytes)); }).empty());
  CHECK(tracked_memory.peak <= 16 * bytes.size());
}

TEST_CASE("codec: the limit on depth holds for both sides, so that no message exhausts the stack") {
  CHECK(value_of<objects::tree>(value_bytes(deep_tree(64))) == deep_tree(64));
  const std::string text =
      "object exceeds the codec's limits: objects are nested deeper than the 64 levels that codec_limits::depth allows";
  CHECK(error_of([&] { static_cast<void>(value_bytes(deep_tree(65))); }) == text);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "0000000001";
  CHECK(error_of_value<objects::tree>(deep).starts_with(text + ", at byte 320 of 500000"));
  std::string chained;
  for (int i = 0; i < 100000; ++i) chained += "0000000001";
  CHECK(error_of_value<objects::chain>(chained).starts_with(text));
  codec_limits limits;
  limits.depth = 1000;
  CHECK(value_of<objects::tree>(value_bytes(deep_tree(1000), limits), limits) == deep_tree(1000));
  limits.depth = 3;
  CHECK_FALSE(error_of([&] { static_cast<void>(value_of<objects::tree>(value_bytes(deep_tree(4)), limits)); }).empty());
}

TEST_CASE("codec: limits of the message are handed through") {
  codec_limits limits;
  limits.bytes = 4096;
  limits.elements = 10;
  std::vector<std::byte> bytes;
  encode_objects(bytes, limits, std::vector<int>(10));
  CHECK(decode_objects<std::vector<int>>(bytes, limits).size() == 10);
  limits.elements = 9;
  CHECK_FALSE(error_of([&] { static_cast<void>(decode_objects<std::vector<int>>(bytes, limits)); }).empty());
}
