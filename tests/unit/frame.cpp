// SPDX-License-Identifier: BSL-1.0
// The header of every message: its place on the wire, and that bytes which no rank of this version sends are refused.
#include <doctest/doctest.h>

#include <cohort/transport/frame.hpp>
#include <cohort/transport/matching.hpp>

#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>

namespace {

using namespace cohort;
using namespace cohort::transport;

frame sample() {
  frame f;
  f.kind = frame_kind::announce;
  f.ticket = 0x1122334455667788;
  f.header.context = 0xa1b2c3d4e5f60718;
  f.header.sequence = 0x01020304;
  f.header.bytes = 0xfedcba98765432;
  f.header.call.kind = operation_kind::all_reduce;
  f.header.call.algorithm = collective::algorithm::circulant;
  f.header.call.type = 7;
  f.header.call.functor = 9;
  f.header.call.root = 3;
  f.header.call.count = 0x0807060504030201;
  return f;
}

std::string hex(const frame::bytes_type& bytes) {
  std::string text;
  for (const unsigned char b : bytes) {
    char two[3] = {};
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(b));
    text += two;
  }
  return text;
}

bool equal(const frame& a, const frame& b) {
  return a.kind == b.kind && a.ticket == b.ticket && a.awaits_reading == b.awaits_reading && a.places == b.places &&
         a.header.context == b.header.context && a.header.sequence == b.header.sequence && a.header.tagged == b.header.tagged &&
         a.header.bytes == b.header.bytes && a.header.call == b.header.call;
}

/// A message, and a receive that it is for, but mostly for one thing.
struct nearly_right {
  envelope expected = sample().header;
  envelope came{};
  std::size_t room = 0;

  explicit nearly_right(std::mt19937_64& random) {
    expected.tagged = random() % 2 == 0;
    expected.bytes = random() % 4096;
    room = static_cast<std::size_t>(expected.bytes) + (random() % 4 == 0 ? random() % 3 : 0);
    came = expected;
    switch (random() % 12) {
      case 0: came.context ^= std::uint64_t{1} << random() % 64; break;
      case 1: came.sequence ^= std::uint32_t{1} << random() % 32; break;
      case 2: came.tagged = !came.tagged; break;
      case 3: came.bytes ^= std::uint64_t{1} << random() % 50; break;
      case 4: came.call.count ^= std::uint64_t{1} << random() % 64; break;
      case 5: came.call.type ^= static_cast<std::uint16_t>(1U << random() % 16); break;
      case 6: came.call.functor ^= static_cast<std::uint16_t>(1U << random() % 16); break;
      case 7: came.call.root ^= static_cast<std::uint16_t>(1U << random() % 16); break;
      case 8: came.call.kind = operation_kind::broadcast; break;
      default: break;
    }
  }
};

}  // namespace

TEST_CASE("a signature in words is the same as in parts") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 10000; ++i) {
    const std::uint64_t bits = random();
    signature in_parts = signature::unpack(bits, random());
    REQUIRE(in_parts.packed() == bits);
    signature words;
    words.count = random();
    const std::uint64_t count = words.count;
    words.set_packed(bits);
    REQUIRE(words.count == count);
    words.copy_by_words(in_parts);
    REQUIRE(words == in_parts);
    in_parts.kind = operation_kind::scan;
    REQUIRE(words.packed_as(operation_kind::scan) == in_parts.packed());
  }
}

TEST_CASE("frame: its place on the wire is fixed") {
  CHECK(hex(sample().encode()) ==
        "02000000" "04030201"   // kind, tagged, reserved; sequence
        "1807f6e5d4c3b2a1"      // context
        "32547698badcfe00"      // bytes
        "8877665544332211"      // ticket
        "0102030405060708"      // count
        "0806" "0700" "0900" "0300");  // kind and algorithm, type, functor, root
}

TEST_CASE("frame: what is encoded is decoded, for every kind; that more waits to be read is said of messages alone") {
  for (unsigned kind = 1; kind <= 10; ++kind) {
    for (const unsigned flags : {0U, 1U, 2U, 3U}) {
      frame f = sample();
      f.kind = static_cast<frame_kind>(kind);
      f.header.tagged = (flags & 1) != 0;
      f.awaits_reading = (flags & 2) != 0;
      f.places = f.kind == frame_kind::offer || f.kind == frame_kind::share ? 3 : 0;
      const bool is_said = !f.awaits_reading || f.kind == frame_kind::message;
      frame back;
      REQUIRE(frame::decode(f.encode().data(), back) == is_said);
      if (is_said) CHECK(equal(f, back));
    }
  }
}

TEST_CASE("frame: kinds, flags, reserved bytes and lengths that nobody sends are refused") {
  const frame::bytes_type good = sample().encode();
  frame ignored;
  const auto refused = [&](std::size_t at, unsigned char value) {
    frame::bytes_type changed = good;
    changed[at] = value;
    return !frame::decode(changed.data(), ignored);
  };
  for (unsigned value = 0; value < 256; ++value) {
    // An offer says how many places follow, and nothing else does.
    const bool known = value >= 1 && value <= 9 && value != static_cast<unsigned>(frame_kind::offer);
    CHECK(refused(0, static_cast<unsigned char>(value)) == !known);
    CHECK(refused(1, static_cast<unsigned char>(value)) == (value > 1));
    for (const std::size_t places : {2U, 3U}) {
      CHECK(refused(places, static_cast<unsigned char>(value)) == (value != 0));
    }
  }
  frame f = sample();
  f.header.bytes = std::uint64_t{1} << 56;
  CHECK(frame::decode(f.encode().data(), ignored));
  ++f.header.bytes;
  CHECK_FALSE(frame::decode(f.encode().data(), ignored));
  f.header.bytes = ~std::uint64_t{0};
  CHECK_FALSE(frame::decode(f.encode().data(), ignored));
}

TEST_CASE("frame: of random bytes only what a rank could have sent is taken, and it can be described") {
  std::mt19937_64 random(7);
  int taken = 0;
  for (int i = 0; i < 200000; ++i) {
    frame::bytes_type bytes{};
    for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
    // Left to chance alone nothing would ever get past the reserved bytes.
    if (i % 2 == 0) {
      bytes[0] = static_cast<unsigned char>(random() % 8);
      bytes[1] = static_cast<unsigned char>(random() % 2);
      bytes[2] = bytes[3] = bytes[23] = 0;
    }
    frame f;
    if (!frame::decode(bytes.data(), f)) continue;
    ++taken;
    REQUIRE(f.encode() == bytes);
    if (taken % 64 == 0) CHECK_FALSE(describe_fully(f.header.call).empty());
  }
  CHECK(taken > 50000);
}

TEST_CASE("frame: a header that is looked at where it lies is taken for the same as one that is decoded") {
  std::mt19937_64 random(11);
  const auto one_in = [&random](unsigned n) { return random() % n == 0; };
  int taken = 0;
  int refused = 0;
  for (int i = 0; i < 200000; ++i) {
    const nearly_right m(random);
    frame came;
    came.kind = one_in(16) ? static_cast<frame_kind>(random() % 12) : frame_kind::message;
    came.header = m.came;
    came.awaits_reading = one_in(3);
    if (one_in(4)) came.ticket = random();
    if (one_in(12)) came.places = static_cast<std::uint16_t>(random() % 3);
    frame::bytes_type bytes = came.encode();
    if (one_in(32)) bytes[1] = static_cast<unsigned char>(random());
    frame decoded;
    const bool is_it = frame::decode(bytes.data(), decoded) && decoded.kind == frame_kind::message &&
                       may_take(decoded.header, m.expected, m.room);
    REQUIRE(frame::is_message_for(bytes.data(), m.expected, m.room) == is_it);
    if (is_it) {
      REQUIRE(frame::message_bytes(bytes.data()) == decoded.header.bytes);
      REQUIRE(frame::says_awaits_reading(bytes.data()) == decoded.awaits_reading);
    }
    ++(is_it ? taken : refused);
  }
  CHECK(taken > 20000);
  CHECK(refused > 20000);
}

TEST_CASE("frame: a message is encoded as any frame is") {
  for (const bool awaits_reading : {false, true}) {
    frame f = sample();
    f.kind = frame_kind::message;
    f.ticket = 0;
    f.awaits_reading = awaits_reading;
    frame::bytes_type bytes{};
    frame::encode_message(bytes, f.header, awaits_reading);
    CHECK(hex(bytes) == hex(f.encode()));
  }
}
