// SPDX-License-Identifier: BSL-1.0
// Strings and containers of the standard library, empty, full and in each other.
#include <doctest/doctest.h>

#include <cohort/bfloat16.hpp>
#include <cohort/codec.hpp>
#include <cohort/half.hpp>

#include "support/object_bytes.hpp"
#include "support/object_types.hpp"

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <functional>
#include <list>
#include <map>
#include <memory_resource>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace {

using namespace cohort;
using namespace std::string_literals;
using harness::error_of_value;
using harness::hex;
using harness::round_trip;
using harness::value_bytes;

template <class T>
void check(const T& value) {
  CHECK(round_trip(value) == value);
  CHECK(round_trip(T{}) == T{});
}

}  // namespace

TEST_CASE("codec: strings of every kind, whatever is in them") {
  check("hello"s);
  check("zeros \0 and \xff\xfe no UTF-8 \xc3"s);
  check(std::string(100000, 'x'));
  check(std::u8string(u8"größe"));
  check(std::u16string(u"größe 𝄞"));
  check(std::u32string(U"größe 𝄞"));
  check(std::wstring(L"größe 𝄞"));
  check(std::pmr::string("from a memory resource, and longer than what fits inside"));
  CHECK(hex(value_bytes("hi"s)) == "026869");
  CHECK(hex(value_bytes(std::u16string(u"hi"))) == "0268006900");
  CHECK(hex(value_bytes(std::wstring(L"h"))) == "0168000000");
}

TEST_CASE("codec: sequences") {
  check(std::vector<int>{1, -2, 3});
  check(std::vector<std::uint8_t>(1000, 7));
  check(std::vector<double>(300, 0.1));
  check(std::vector<std::string>{"a", "", "ccc"});
  check(std::vector<half>{half(1), half(-2)});
  check(std::vector<bfloat16>{bfloat16(1), bfloat16(-2)});
  check(std::vector<std::byte>{std::byte{1}, std::byte{255}});
  check(std::vector<std::complex<double>>{{1, 2}, {3, 4}});
  check(std::vector<objects::shade>{objects::shade::dark, objects::shade{77}});
  check(std::vector<std::array<float, 3>>{{1, 2, 3}, {4, 5, 6}});
  check(std::vector<std::vector<std::vector<int>>>{{{1}, {}}, {}, {{2, 3}}});
  check(std::deque<std::string>{"a", "b"});
  check(std::deque<int>(1000, 3));
  check(std::list<int>{3, 1, 2});
  check(std::forward_list<std::string>{"x", "y", "z"});
  check(std::pmr::vector<std::pmr::string>{"x", "y"});
  CHECK(hex(value_bytes(std::vector<std::int16_t>{1, 2})) == "0201000200");
  CHECK(hex(value_bytes(std::forward_list<char>{'x', 'y'})) == "027879");
  CHECK(hex(value_bytes(std::vector<std::string>{"a", ""})) == "02016100");
}

TEST_CASE("codec: counts are in their shortest form") {
  CHECK(hex(value_bytes(std::string(127, 'x'))).substr(0, 4) == "7f78");
  CHECK(hex(value_bytes(std::string(128, 'x'))).substr(0, 6) == "800178");
  CHECK(hex(value_bytes(std::string(20000, 'x'))).substr(0, 8) == "a09c0178");
  for (const std::string_view other :
       {"8000", "818000", "ffffffffffffffffff7f", "ffffffffffffffffffff01", "80808080808080808002"}) {
    CHECK(error_of_value<std::string>(other).starts_with(
        "malformed object message: expected a count in its shortest form"));
  }
  CHECK(error_of_value<std::string>("ffffffffffffffffff01")
            .starts_with("object exceeds the codec's limits: a container of 18446744073709551615"));
  CHECK(error_of_value<std::string>("80").starts_with("malformed object message: expected 1 byte, found 0"));
}

TEST_CASE("codec: vector<bool> and bitset take a bit each") {
  std::vector<bool> bits;
  for (int i = 0; i < 40; ++i) {
    CHECK(round_trip(bits) == bits);
    CHECK(value_bytes(bits).size() == 1 + (bits.size() + 7) / 8);
    bits.push_back(i % 3 == 0);
  }
  check(std::vector<std::vector<bool>>{{true}, {}, {false, true}});
  check(std::bitset<1>(1));
  check(std::bitset<8>(0xa5));
  check(std::bitset<77>().set(76).set(3));
  CHECK(round_trip(std::bitset<0>()) == std::bitset<0>());
  CHECK(hex(value_bytes(std::vector<bool>{true, false, true})) == "0305");
  CHECK(hex(value_bytes(std::bitset<9>(0x101))) == "0101");
  CHECK(error_of_value<std::vector<bool>>("0309") ==
        "malformed object message: expected 0 in the bits after the last, found others, at byte 2 of 2");
  CHECK(error_of_value<std::bitset<9>>("0103").starts_with(
      "malformed object message: expected 0 in the bits after the last"));
  CHECK(error_of_value<std::vector<bool>>("1105").starts_with(
      "malformed object message: expected 17 bits, found 1 bytes"));
}

TEST_CASE("codec: arrays have no count") {
  check(std::array<int, 3>{1, 2, 3});
  check(std::array<std::string, 2>{"a", "b"});
  check(std::array<std::array<bool, 2>, 2>{{{true, false}, {false, true}}});
  CHECK(round_trip(std::array<int, 0>{}) == std::array<int, 0>{});
  const std::array<objects::without_default, 2> two{objects::without_default(1), objects::without_default(2)};
  CHECK(round_trip(two) == two);
  CHECK(hex(value_bytes(std::array<char, 3>{'a', 'b', 'c'})) == "616263");
  CHECK(hex(value_bytes(std::array<int, 0>{})) == "00");
}

TEST_CASE("codec: sets and maps, ordered and not") {
  check(std::set<std::string>{"b", "a", "c"});
  check(std::set<int, std::greater<>>{1, 2, 3});
  check(std::multiset<int>{1, 1, 2});
  check(std::unordered_set<std::string>{"b", "a", "c"});
  check(std::unordered_multiset<int>{1, 1, 2});
  check(std::map<std::string, int>{{"b", 1}, {"a", 2}});
  check(std::map<int, std::map<int, std::set<int>>>{{1, {{2, {3, 4}}}}, {5, {}}});
  check(std::multimap<int, std::string>{{1, "x"}, {1, "y"}, {0, "z"}});
  check(std::unordered_map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  check(std::unordered_multimap<int, int>{{1, 1}, {1, 1}, {2, 1}});
  std::unordered_map<int, int> many;
  for (int i = 0; i < 5000; ++i) many[i * 7919] = i;
  check(many);
  CHECK(hex(value_bytes(std::map<char, bool>{{'b', true}, {'a', false}})) == "0261006201");
}

TEST_CASE("codec: a key that comes twice where each is held once is refused") {
  const std::string text = "malformed object message: expected every key once, found one twice";
  CHECK(error_of_value<std::set<char>>("026161") == text + ", at byte 3 of 3");
  CHECK(error_of_value<std::map<char, bool>>("0261006101") == text + ", at byte 5 of 5");
  CHECK(error_of_value<std::unordered_set<char>>("03616261") == text + ", at byte 4 of 4");
  CHECK(error_of_value<std::unordered_map<char, bool>>("0261006101") == text + ", at byte 5 of 5");
  // The order is the container's own business: another comparison or another hash table makes another.
  CHECK(harness::value_of<std::set<char>>(harness::unhex("026261")) == std::set<char>{'a', 'b'});
}
