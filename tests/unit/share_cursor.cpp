// SPDX-License-Identifier: BSL-1.0
// The number by which two ends of a message agree who copies what of it: all of it, nothing twice, whoever comes when.
#include <cohort/transport/shm/share_cursor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace {

using cohort::transport::share_cursor;

constexpr std::uint64_t ticket = std::uint64_t{0xabcde} << share_cursor::bits;
constexpr std::uint64_t kibibyte = 1024;

/// Both ends take shares until none is left, the sender each time with that chance.
void check(std::uint64_t bytes, double chance, std::mt19937_64& random) {
  CAPTURE(bytes);
  CAPTURE(chance);
  const share_cursor cursor(bytes);
  std::bernoulli_distribution sends(chance);
  std::uint64_t word = ticket;
  std::uint64_t front = 0;
  std::uint64_t end = bytes;
  while (front < end) {
    const bool sender = sends(random);
    const share_cursor::share s = sender ? cursor.from_end(word) : cursor.from_front(word);
    REQUIRE(s.bytes > 0);
    REQUIRE(s.bytes <= end - front);
    REQUIRE(s.first == (sender ? end - s.bytes : front));
    // Half of what is left, so that whoever comes later has as much to do; no small change, and nothing that takes long.
    CHECK((s.bytes >= std::min(end - front, 28 * kibibyte) || bytes > (std::uint64_t{1} << 34)));
    CHECK((s.bytes <= 512 * kibibyte || bytes > (std::uint64_t{1} << 34)));
    (sender ? end : front) = sender ? s.first : s.first + s.bytes;
    word = s.word;
    REQUIRE((word >> share_cursor::bits) == (ticket >> share_cursor::bits));
    CHECK(cursor.of_sender(word) == bytes - end);
  }
  CHECK(cursor.from_front(word).bytes == 0);
  CHECK(cursor.from_end(word).bytes == 0);
  CHECK(cursor.from_end(word).word == word);
}

}  // namespace

TEST_CASE("all of a message is copied once, whoever comes when") {
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> lengths{1,     4095,   4096,    4097,          65535,   65536,
                                     65537, 131072, 1 << 20, (1 << 20) + 1, 64 << 20};
  for (int i = 0; i < 200; ++i) lengths.push_back(1 + random() % (std::uint64_t{4} << 20));
  for (const std::uint64_t bytes : lengths) {
    for (const double chance : {0.0, 0.1, 0.5, 0.9, 1.0}) check(bytes, chance, random);
  }
}

TEST_CASE("a message may be longer than pages can be counted") {
  std::mt19937_64 random(12);
  for (const std::uint64_t bytes :
       {(std::uint64_t{1} << 34) - 4096, std::uint64_t{1} << 34, (std::uint64_t{1} << 34) + 1,
        (std::uint64_t{1} << 40) + 12345, (std::uint64_t{1} << 43) + 1}) {
    CAPTURE(bytes);
    const share_cursor cursor(bytes);
    const share_cursor::share front = cursor.from_front(ticket);
    CHECK(front.first == 0);
    CHECK(front.bytes > 0);
    const share_cursor::share end = cursor.from_end(front.word);
    CHECK(end.first + end.bytes == bytes);
    CHECK(end.first >= front.bytes);
    CHECK(cursor.of_sender(end.word) == end.bytes);
    CHECK((end.word >> share_cursor::bits) == (ticket >> share_cursor::bits));
  }
}

TEST_CASE("nothing is left of a message that was taken away, and of a number that cannot be") {
  const share_cursor cursor(1 << 20);
  constexpr std::uint64_t all = (std::uint64_t{1} << share_cursor::bits) - 1;
  for (const std::uint64_t word : {ticket | all, ticket | (all >> share_cursor::bits / 2), ticket | 256,
                                   ticket | (std::uint64_t{200} << share_cursor::bits / 2) | 100}) {
    CAPTURE(word);
    CHECK(cursor.from_front(word).bytes == 0);
    CHECK(cursor.from_end(word).bytes == 0);
    CHECK(cursor.of_sender(word) <= (1 << 20));
  }
}
