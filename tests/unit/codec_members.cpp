// SPDX-License-Identifier: BSL-1.0
// Objects made of members and alternatives: pair, tuple, optional, variant, unique_ptr, plain structs, described
// classes, and classes with a codec of their own.
#include <doctest/doctest.h>

#include <cohort/codec.hpp>

#include "support/object_bytes.hpp"
#include "support/object_types.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace cohort;
using namespace objects;
using namespace std::string_literals;
using harness::error_of;
using harness::error_of_value;
using harness::hex;
using harness::message_of;
using harness::round_trip;
using harness::value_bytes;

template <class T>
void check(const T& value) {
  CHECK(round_trip(value) == value);
}

struct thrower {
  thrower() = default;
  thrower(const thrower& /*other*/) { throw 1; }
  thrower& operator=(const thrower& /*other*/) { return *this; }
};

/// More elements than the arrays of PFR's own examples.
struct long_name {
  char name[300] = {};
  int after = 0;
};

}  // namespace

template <>
struct cohort::codec<thrower> {
  static constexpr std::string_view name = "thrower";
  static void encode(writer& to, const thrower& /*value*/) { to.write(true); }
  static thrower decode(reader& from) {
    if (!from.read<bool>()) from.fail("expected true");
    return {};
  }
};

namespace {
/// A codec that forgets that a value takes at least one byte.
struct silent {};
}  // namespace
template <>
struct cohort::codec<silent> {
  static void encode(writer& /*to*/, const silent& /*value*/) {}
  static silent decode(reader& /*from*/) { return {}; }
};

TEST_CASE("codec: pairs and tuples") {
  check(std::pair(1, "x"s));
  check(std::pair<const int, std::string>(1, "x"));
  check(std::tuple(1, "x"s, 2.5, true));
  check(std::tuple<>());
  check(std::tuple(std::tuple(1), std::tuple(std::tuple(2))));
  check(std::vector<std::tuple<>>(5));
  CHECK(hex(value_bytes(std::pair('a', true))) == "6101");
  CHECK(hex(value_bytes(std::tuple('a', std::tuple<>()))) == "6100");
}

TEST_CASE("codec: optional, variant, monostate and unique_ptr") {
  check(std::optional<int>());
  check(std::optional<int>(5));
  check(std::optional(std::optional<int>()));
  check(std::optional(std::vector{"x"s}));
  check(std::variant<int, std::string, int>(std::in_place_index<2>, 7));
  check(std::variant<std::monostate, std::vector<std::variant<int, bool>>>(
      std::vector<std::variant<int, bool>>{1, true}));
  check(std::vector<std::monostate>(9));
  CHECK(*round_trip(std::make_unique<std::string>("x")) == "x");
  CHECK(round_trip(std::unique_ptr<int>()) == nullptr);
  CHECK(hex(value_bytes(std::optional<char>())) == "00");
  CHECK(hex(value_bytes(std::optional('a'))) == "0161");
  CHECK(hex(value_bytes(std::variant<int, char>('a'))) == "0161");
  CHECK(hex(value_bytes(std::monostate())) == "00");
  CHECK(error_of_value<std::optional<char>>("0261") ==
        "malformed object message: expected a bool of 0 or 1, found 2, at byte 1 of 2");
  CHECK(error_of_value<std::variant<int, char>>("0261") ==
        "malformed object message: expected one of 2 alternatives of a variant, found number 2, at byte 1 of 2");
  CHECK(error_of_value<std::monostate>("01") ==
        "malformed object message: expected the byte 0 of an empty object, found 1, at byte 1 of 1");
}

TEST_CASE("codec: a variant without a value cannot be sent") {
  std::variant<int, thrower> broken;
  const thrower original;
  try {
    broken.emplace<thrower>(original);
  } catch (int) {}
  REQUIRE(broken.valueless_by_exception());
  std::vector<std::byte> out(3);
  CHECK(error_of([&] { encode_objects(out, broken); }) ==
        "invalid argument: a std::variant that an exception left without a value cannot be sent");
  CHECK(out.size() == 3);
}

TEST_CASE("codec: plain structs") {
  check(nothing{});
  check(std::vector<nothing>(3));
  check(point{1, 2});
  check(padded{1, -1});
  check(person{"Ada", 36, point{1, 2}, {{"x", {1, 2}}, {"y", {}}}});
  check(std::vector<point>{{1, 2}, {3, 4}});
  check(std::vector<padded>{{1, 2}, {3, 4}});
  check(constant{5, "text"});
  check(std::vector<constant>{{5, "text"}, {6, "more"}});
  CHECK(hex(value_bytes(padded{1, -1})) == "01ffffffffffffffff");
  CHECK(hex(value_bytes(std::vector<padded>{{1, 2}})) == "01010200000000000000");
  CHECK(hex(value_bytes(nothing{})) == "00");
}

TEST_CASE("codec: recursive structs") {
  check(tree{1, {{2, {}}, {3, {{4, {}}}}}});
  folder f{"root", {{"empty", std::nullopt}, {"full", std::vector<folder>{{"inner", {}}}}}};
  const folder back = round_trip(f);
  CHECK(back.files.at(1).folders.value().at(0).name == "inner");
  chain c{1, std::make_unique<chain>(chain{2, nullptr})};
  CHECK(decode_objects<chain>(message_of(c)).next->value == 2);
}

TEST_CASE("codec: built-in arrays in structs") {
  with_arrays value{1, "hello", {{1, 2}, {3, 4}}, {"x", "y"}, {5, 6}};
  const auto back = round_trip(value);
  CHECK(back.first == 1);
  CHECK(std::strcmp(back.name, "hello") == 0);
  CHECK(back.matrix[1][0] == 3);
  CHECK(back.texts[1] == "y");
  CHECK(back.last == std::vector<int>{5, 6});
  CHECK(hex(value_bytes(only_array{{1, 2, 3}})) == "010000000200000003000000");
  CHECK(round_trip(only_array{{1, 2, 3}}).values[2] == 3);
  CHECK(round_trip(std::vector<only_array>(4, only_array{{7, 8, 9}})).at(3).values[1] == 8);
  long_name named{"somebody", 5};
  CHECK(round_trip(named).after == 5);
  CHECK(std::strcmp(round_trip(named).name, "somebody") == 0);
}

TEST_CASE("codec: described classes, with private members and bases") {
  check(account(5, "Ada", 12.5));
  CHECK(round_trip(account(5, "Ada", 12.5)).number() == 5);
  square s;
  s.color = 3;
  s.side = 2;
  CHECK(round_trip(s).area() == 4);
  CHECK(round_trip(s).color == 3);
  std::vector<std::byte> bytes;
  encode_objects(bytes, std::make_unique<square>(s));
  CHECK(decode_objects<std::unique_ptr<square>>(bytes)->color == 3);
  CHECK(hex(value_bytes(s)) == "030000000000000000000040");
}

TEST_CASE("codec: a codec of one's own") {
  check(without_default(4));
  check(std::map<int, std::optional<without_default>>{{1, without_default(4)}, {2, std::nullopt}});
  check(even(4));
  check(boxed(boxed("x"s)));
  CHECK(error_of_value<even>("03000000") ==
        "malformed object message: expected an even number, found 3, at byte 4 of 4");
  CHECK(error_of([] {
          static_cast<void>(message_of(std::vector<silent>(2)));
        }).ends_with("silent>::encode wrote 0 bytes, and a value takes at least 1"));
}

TEST_CASE("codec: what a constructor of the program throws comes through") {
  CHECK_THROWS_AS(static_cast<void>(harness::value_of<std::vector<thrower>>(harness::unhex("020101"))), int);
}

TEST_CASE("codec: members that are there when a later one fails are destroyed") {
  // Left to the leak checker: g++ has forgotten the members of half-made aggregates before.
  CHECK_FALSE(error_of_value<std::vector<person>>("01"
                                                  "28" +
                                                  std::string(80, '6') +
                                                  "01000000"
                                                  "02")
                  .empty());
  CHECK_FALSE(error_of_value<std::array<std::string, 2>>("28" + std::string(80, '6') + "01").empty());
  CHECK_FALSE(error_of_value<constant>("01000000"
                                       "28" +
                                       std::string(60, '6'))
                  .empty());
  CHECK_FALSE(error_of_value<std::tuple<std::string, bool>>("28" + std::string(80, '6') + "02").empty());
}
