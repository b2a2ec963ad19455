// SPDX-License-Identifier: BSL-1.0
// How a long message is cut for several streams, and how its receiver keeps account: chunks cover a message once, a ledger
// refuses whatever does not, and there are as many streams as a link needs. stripe_streams.cpp has what moves them.
#include "../support/between.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/stripes.hpp>
#include <cohort/transport/tcp_stripes.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace cohort;
using namespace cohort::transport;

using harness::between;
using harness::generator;

std::vector<chunk> cut(std::uint64_t total, std::uint64_t unit, std::size_t streams) {
  std::vector<chunk> all;
  for (chunk_cutter c(9, total, unit, streams); !c.done();) all.push_back(c.next());
  return all;
}

}  // namespace

TEST_CASE("stripes: chunks cover a message once, in order, and end where the receiver can bear it") {
  generator random(2024);
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t unit = between(random, 1, round % 3 == 0 ? longest_chunk : 100);
    const std::uint64_t total = unit * between(random, 1, 1 + (std::uint64_t{8} << 20) / unit);
    const std::size_t streams = between(random, 0, 40);
    CAPTURE(unit);
    CAPTURE(total);
    REQUIRE(can_be_cut(total, unit));
    chunk_ledger ledger(total, unit);
    std::uint64_t at = 0;
    for (const chunk& c : cut(total, unit, streams)) {
      REQUIRE(c.offset == at);
      REQUIRE(c.bytes > 0);
      at += c.bytes;
      REQUIRE(!ledger.complete());
      REQUIRE(ledger.begin(c));
      ledger.end(c);
    }
    REQUIRE(at == total);
    REQUIRE(ledger.complete());
    REQUIRE(ledger.entries() == 1);
  }
  CHECK(cut(shortest_striped, 1, 4).size() == 16);  // also the shortest is worth several streams
  CHECK_FALSE(can_be_cut(100, 0));
  CHECK_FALSE(can_be_cut(100, 3));
  CHECK_FALSE(can_be_cut(4 * longest_chunk, 2 * longest_chunk));
}

TEST_CASE("stripes: a ledger takes chunks in any order and each of them once") {
  generator random(7);
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t unit = between(random, 1, 3000);
    const std::uint64_t total = unit * between(random, 1, (std::uint64_t{6} << 20) / unit);
    std::vector<chunk> all = cut(total, unit, between(random, 1, 8));
    std::shuffle(all.begin(), all.end(), random);
    chunk_ledger ledger(total, unit);
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(ledger.begin(all[i]));
      const chunk& earlier = all[between(random, 0, i)];
      REQUIRE_FALSE(ledger.begin(earlier));
      // Parts of what has come, or more than it, are what has come too.
      chunk wrong = earlier;
      wrong.bytes = std::min<std::uint64_t>(total - wrong.offset, wrong.bytes + unit);
      REQUIRE_FALSE(ledger.begin(wrong));
      if (earlier.offset >= unit) {
        wrong = {earlier.ticket, earlier.offset - unit, earlier.bytes};
        REQUIRE_FALSE(ledger.begin(wrong));
      }
      REQUIRE(ledger.entries() <= i + 1);
    }
    REQUIRE_FALSE(ledger.complete());
    for (const chunk& c : all) ledger.end(c);
    REQUIRE(ledger.complete());
    REQUIRE(ledger.entries() == 1);
  }
}

TEST_CASE("stripes: a ledger is not to be had by numbers") {
  constexpr std::uint64_t total = 10 * longest_chunk;
  constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();
  const auto refused = [](std::uint64_t offset, std::uint64_t bytes) {
    chunk_ledger ledger(total, 8);
    return !ledger.begin({1, offset, bytes}) && ledger.entries() == 0 && !ledger.complete();
  };
  CHECK(refused(0, 0));
  CHECK(refused(total, 0));
  CHECK(refused(total, 8));
  CHECK(refused(total - 8, 16));
  CHECK(refused(0, longest_chunk + 8));
  CHECK(refused(0, total));
  CHECK(refused(huge, shortest_chunk));
  CHECK(refused(huge - 7, 8));
  CHECK(refused(8, huge - 7));
  CHECK(refused(0, huge));
  CHECK(refused(4, shortest_chunk));      // between elements
  CHECK(refused(0, shortest_chunk + 4));  // the same
  CHECK(refused(0, shortest_chunk - 8));  // only the last may be so short
  CHECK_FALSE(refused(total - 8, 8));
  CHECK_FALSE(refused(0, shortest_chunk));

  // Whatever comes, it counts no byte twice and keeps no more than a few entries.
  generator random(99);
  for (int round = 0; round < 200; ++round) {
    chunk_ledger ledger(total, 8);
    std::vector<bool> seen(total / 8);
    std::uint64_t taken = 0;
    for (int i = 0; i < 300; ++i) {
      const chunk c{1, 8 * between(random, 0, total / 8), 8 * between(random, 0, longest_chunk / 8)};
      const bool inside = c.bytes >= 8 && c.offset + c.bytes <= total;
      const std::size_t first = c.offset / 8;
      const std::size_t count = inside ? c.bytes / 8 : 0;
      const auto at = seen.begin() + static_cast<std::ptrdiff_t>(inside ? first : 0);
      const bool fresh =
          std::find(at, at + static_cast<std::ptrdiff_t>(count), true) == at + static_cast<std::ptrdiff_t>(count);
      const bool long_enough = c.bytes >= shortest_chunk || c.offset + c.bytes == total;
      REQUIRE(ledger.begin(c) == (inside && fresh && long_enough));
      if (!(inside && fresh && long_enough)) continue;
      std::fill(at, at + static_cast<std::ptrdiff_t>(count), true);
      ledger.end(c);
      taken += c.bytes;
      REQUIRE(ledger.complete() == (taken == total));
      REQUIRE(ledger.entries() <= total / shortest_chunk + 1);
    }
  }
}

TEST_CASE("stripes: a header is what it was before it was sent") {
  generator random(3);
  for (int i = 0; i < 100; ++i) {
    const chunk c{random(), random(), random()};
    CHECK(chunk::decode(c.encode().data()) == c);
  }
  CHECK(chunk{}.is_goodbye());
  CHECK_FALSE(chunk{1, 0, 0}.is_goodbye());
}
TEST_CASE("stripes: as many as a link needs, and a number that makes no sense is refused") {
  CHECK(stripes_for(-1) == 1);
  CHECK(stripes_for(0) == 1);
  CHECK(stripes_for(1000) == 1);
  CHECK(stripes_for(5000) == 1);
  CHECK(stripes_for(5001) == 2);
  CHECK(stripes_for(10000) == 2);
  CHECK(stripes_for(25000) == 5);
  CHECK(stripes_for(40000) == 8);
  CHECK(stripes_for(400000) == 8);
  CHECK(stripes_for(std::numeric_limits<long>::max()) == 8);
  CHECK(stripes_for(link_speed_of(boost::asio::ip::address_v4::loopback())) == 1);
  CHECK(link_speed_of(boost::asio::ip::make_address("192.0.2.1")) == -1);  // nobody's
  CHECK_NOTHROW(require_stripes(0));
  CHECK_NOTHROW(require_stripes(32));
  for (const int wrong : {-1, 33}) {
    try {
      require_stripes(wrong);
      FAIL("accepted");
    } catch (const error& e) {
      CHECK(e.condition() == errc::invalid_argument);
      CHECK(std::string(e.what()).find("stripes: " + std::to_string(wrong) + ": expected 1 to 32") !=
            std::string::npos);
    }
  }
}
