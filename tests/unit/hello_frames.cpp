// SPDX-License-Identifier: BSL-1.0
// Hellos and replies from strangers: whatever 96 bytes come, they are judged without harm, explained in words, and let
// nobody in who does not know the secret.
#include <doctest/doctest.h>

#include <cohort/transport/hello.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace cohort;
using namespace cohort::transport;

constexpr std::string_view secret = "0123456789abcdef";

hello_expectation listener(std::string_view with_secret) {
  hello_expectation e;
  e.role = connection_role::control;
  e.job = job_id("run");
  e.world_size = 8;
  e.rank = 2;
  e.secret = with_secret;
  return e;
}

hello_bytes random_bytes(std::mt19937& random) {
  hello_bytes bytes{};
  for (unsigned char& b : bytes) b = static_cast<unsigned char>(random());
  return bytes;
}

void put_magic(hello_bytes& bytes, std::string_view magic) { std::copy(magic.begin(), magic.end(), bytes.begin()); }

}  // namespace

TEST_CASE("hello frames: garbage is refused, and the reason can be said") {
  std::mt19937 random(11);
  std::set<hello_field> reasons;
  for (int i = 0; i < 5000; ++i) {
    hello_bytes bytes = random_bytes(random);
    if (i % 4 != 0) put_magic(bytes, hello_layout::hello_magic);
    // Further and further in: the right version, no proof, the right role.
    if (i % 4 >= 2) cohort::detail::put_little(bytes.data() + 8, protocol_version);
    if (i % 4 == 3) {
      bytes[12] = static_cast<unsigned char>(connection_role::control);
      std::fill(bytes.begin() + 64, bytes.end(), static_cast<unsigned char>(0));
    }
    for (const std::string_view with : {std::string_view{}, secret}) {
      const hello_verdict v = judge(bytes, listener(with));
      REQUIRE_FALSE(v.accepted());
      REQUIRE(explain(v) != "accepted");
      REQUIRE_FALSE(explain(v).empty());
      reasons.insert(v.field);
    }
  }
  CHECK(reasons == std::set<hello_field>{hello_field::magic, hello_field::version, hello_field::proof, hello_field::job});
}

TEST_CASE("hello frames: without a secret each number is still compared") {
  hello h;
  h.role = connection_role::control;
  h.job = job_id("run");
  h.world_size = 8;
  h.rank = 5;
  h.target = 2;
  REQUIRE(judge(encode(h), listener({})).accepted());
  for (const std::int32_t rank : {-2, 8, 100, INT32_MIN, INT32_MAX}) {
    hello other = h;
    other.rank = rank;
    CHECK(judge(encode(other), listener({})) == hello_verdict{hello_field::rank, 7, rank});
  }
  for (const std::int32_t size : {0, -8, 7, 9, INT32_MIN, INT32_MAX}) {
    hello other = h;
    other.world_size = size;
    CHECK(judge(encode(other), listener({})) == hello_verdict{hello_field::world_size, 8, size});
  }
}

TEST_CASE("hello frames: every single changed bit of a sealed hello is refused") {
  hello h;
  h.role = connection_role::control;
  h.job = job_id("run");
  h.world_size = 8;
  h.rank = 5;
  h.target = 2;
  h.nonce[3] = 99;
  const hello_bytes good = sealed(h, secret);
  REQUIRE(judge(good, listener(secret)).accepted());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    hello_bytes changed = good;
    changed[bit / 8] = static_cast<unsigned char>(changed[bit / 8] ^ (1U << (bit % 8)));
    CHECK_FALSE(judge(changed, listener(secret)).accepted());
  }
}

TEST_CASE("hello frames: a reply of random bytes is read within its bounds and is never genuine") {
  std::mt19937 random(12);
  hello asked;
  asked.nonce[0] = 1;
  int understood = 0;
  for (int i = 0; i < 5000; ++i) {
    hello_bytes bytes = random_bytes(random);
    if (i % 2 == 0) put_magic(bytes, hello_layout::reply_magic);
    const auto reply = decode_reply(bytes);
    REQUIRE(reply.has_value() == (i % 2 == 0));
    REQUIRE_FALSE(is_genuine(bytes, asked, secret));
    if (!reply) continue;
    ++understood;
    REQUIRE_FALSE(explain(reply->verdict).empty());
    static_cast<void>(error_code_of(reply->verdict.field));
  }
  CHECK(understood == 2500);
}

TEST_CASE("hello frames: a reply with a reason that this version does not know is a refusal") {
  for (unsigned field = static_cast<unsigned>(hello_field::tls) + 1; field < 0x10000; field += 97) {
    hello_reply r;
    hello_bytes bytes = sealed(r, hello{}, {});
    cohort::detail::put_little(bytes.data() + 12, static_cast<std::uint16_t>(field));
    const auto back = decode_reply(bytes);
    REQUIRE(back.has_value());
    CHECK_FALSE(back->verdict.accepted());
  }
}

TEST_CASE("hello frames: a hello is no proof for another listener, nor for another job or epoch") {
  hello h;
  h.role = connection_role::control;
  h.job = job_id("run");
  h.world_size = 8;
  h.rank = 5;
  h.target = 2;
  const hello_bytes recorded = sealed(h, secret);
  hello_expectation other = listener(secret);
  other.rank = 3;
  CHECK(judge(recorded, other).field == hello_field::target);
  other = listener(secret);
  other.epoch = 1;
  CHECK(judge(recorded, other).field == hello_field::epoch);
  other = listener(secret);
  other.job = job_id("another run");
  CHECK(judge(recorded, other).field == hello_field::job);
  other = listener(secret);
  other.role = connection_role::data;
  CHECK(judge(recorded, other).field == hello_field::role);
  // A hello that is sent back is no reply.
  CHECK_FALSE(is_genuine(recorded, h, secret));
}
