// SPDX-License-Identifier: BSL-1.0
// Objects as one message: its place on the wire is fixed, a wrong type is an error that names both, and no message that
// is cut, long or of another kind is taken.
#include <doctest/doctest.h>

#include <cohort/codec.hpp>

#include "support/object_bytes.hpp"
#include "support/object_types.hpp"

#include <any>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace cohort;
using namespace std::string_literals;
using harness::error_of;
using harness::hex;
using harness::message_of;

template <class... Ts>
std::string decoding_error(const std::vector<std::byte>& bytes) {
  return error_of([&] { static_cast<void>(decode_objects<Ts...>(bytes)); });
}

}  // namespace

TEST_CASE("codec: one object, and several, in one message") {
  CHECK(decode_objects<std::string>(message_of("x"s)) == "x");
  const auto [number, text, table] =
      decode_objects<int, std::string, std::map<int, bool>>(message_of(7, "x"s, std::map<int, bool>{{1, true}}));
  CHECK(number == 7);
  CHECK(text == "x");
  CHECK(table.at(1));
  static_assert(std::is_same_v<decoded_objects_t<int>, int>);
  static_assert(std::is_same_v<decoded_objects_t<int, bool>, std::tuple<int, bool>>);
}

TEST_CASE("codec: a message is appended to what is there") {
  std::vector<std::byte> bytes{std::byte{1}, std::byte{2}};
  encode_objects(bytes, 5);
  CHECK(bytes[0] == std::byte{1});
  CHECK(decode_objects<int>(std::span(bytes).subspan(2)) == 5);
}

TEST_CASE("codec: the place of a message on the wire is fixed") {
  // magic, format and length of the name, reserved, type hash, "vector<int16>", count, elements
  CHECK(hex(message_of(std::vector<std::int16_t>{1, -1})) ==
        "436f626a"
        "010d"
        "0000"
        "3a0e0a62876695bf"
        "766563746f723c696e7431363e"
        "02"
        "0100"
        "ffff");
  // "int32, string"
  CHECK(hex(message_of(1, "hi"s)) ==
        "436f626a"
        "010d"
        "0000"
        "8ecb87f6496e7fd3"
        "696e7433322c20737472696e67"
        "01000000"
        "026869");
}

TEST_CASE("codec: a wrong type is an error that names both") {
  CHECK(decoding_error<std::map<std::string, int>>(message_of(std::vector<float>{1})) ==
        "object of another type: expected an object of type map<string, int32>, found one of type vector<float32>");
  CHECK(decoding_error<objects::tree>(message_of(objects::point{1, 2}, 5)) ==
        "object of another type: expected an object of type objects::tree{int32, vector<objects::tree>}, found one of "
        "type "
        "objects::point{float32, float32}, int32");
  try {
    static_cast<void>(decode_objects<int>(message_of(5U)));
    FAIL("no error");
  } catch (const error& e) {
    CHECK(e.condition() == errc::wrong_type);
  }
}

TEST_CASE("codec: wrong types of one name are told apart by their hashes") {
  std::vector<std::byte> bytes = message_of(5);
  bytes[8] ^= std::byte{1};
  CHECK(decoding_error<int>(bytes) ==
        "object of another type: expected an object of type int32 #f9e1c08f4291a8df, found one of type int32 "
        "#f9e1c08f4291a8de");
}

TEST_CASE("codec: the name in a message is for people, and cannot harm their terminal") {
  std::vector<std::byte> bytes = message_of(5);
  bytes[16] = std::byte{0x1b};
  bytes[20] = std::byte{0xff};
  CHECK(decoding_error<int>(bytes).empty());
  CHECK(decoding_error<bool>(bytes).ends_with("expected an object of type bool, found one of type ?nt3?"));
}

TEST_CASE("codec: what is no object message of this format is refused") {
  const std::vector<std::byte> good = message_of(5);
  const auto changed = [&](std::size_t at, unsigned char value) {
    std::vector<std::byte> bytes = good;
    bytes[at] = std::byte{value};
    return decoding_error<int>(bytes);
  };
  CHECK(changed(0, 'x') ==
        "malformed object message: expected an object message, found one that begins with \"xobj\", at byte 4 of 25");
  CHECK(changed(4, 2) == "protocol versions differ: expected an object message of format 1, found format 2");
  CHECK(changed(6, 1).starts_with(
      "malformed object message: expected 0 in the reserved bytes of an object message, found 1"));
  CHECK(changed(5, 255).starts_with("malformed object message: expected 255 bytes, found 9"));
  CHECK(decoding_error<int>({}) == "malformed object message: expected 4 bytes, found 0, at byte 0 of 0");
}

TEST_CASE("codec: bytes after the last object are an error") {
  std::vector<std::byte> bytes = message_of("x"s, 5);
  bytes.push_back(std::byte{});
  CHECK(decoding_error<std::string, int>(bytes) ==
        "malformed object message: expected the end of the message, found 1 more bytes, at byte 35 of 36");
}

TEST_CASE("codec: an error leaves the vector as it was") {
  std::vector<std::byte> bytes(3);
  codec_limits limits;
  limits.bytes = 100;
  CHECK_THROWS_AS(encode_objects(bytes, limits, std::vector<int>(1000)), error);
  CHECK(bytes.size() == 3);
}
