// SPDX-License-Identifier: BSL-1.0
// The hello that opens every connection: what each wrong field is refused for, and that the proof of the secret
// holds. And SHA-256 against published vectors.
#include <doctest/doctest.h>

#include <cohort/detail/sha256.hpp>
#include <cohort/transport/hello.hpp>

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace cohort::transport;

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char b : bytes) {
    char two[3] = {};
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(b));
    text += two;
  }
  return text;
}

hello sample() {
  hello h;
  h.role = connection_role::data;
  h.port = 4711;
  h.job = job_id("run");
  h.epoch = 3;
  h.pid = 99;
  h.world_size = 8;
  h.rank = 5;
  h.target = 2;
  h.lane = 1;
  for (std::size_t i = 0; i < h.nonce.size(); ++i) h.nonce[i] = static_cast<unsigned char>(i + 1);
  return h;
}

hello_expectation listener() {
  hello_expectation e;
  e.role = connection_role::data;
  e.job = job_id("run");
  e.epoch = 3;
  e.world_size = 8;
  e.rank = 2;
  return e;
}

constexpr std::string_view secret = "0123456789abcdef";

}  // namespace

TEST_CASE("hello: SHA-256 and HMAC give the published values") {
  using cohort::detail::hmac_sha256;
  using cohort::detail::sha256;
  // FIPS 180-4 examples and RFC 4231 test cases 1, 2 and 6.
  CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(sha256(std::string(1000000, 'a'))) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("hello: what is encoded is decoded, and its place on the wire is fixed") {
  const hello_bytes bytes = encode(sample());
  CHECK(decode_hello(bytes) == sample());
  CHECK(cohort::detail::as_text(bytes).substr(0, 8) == "cohort>\n");
  CHECK(protocol_version == COHORT_VERSION_MAJOR * 0x1000000u + COHORT_VERSION_MINOR * 0x10000u + protocol_revision);
  CHECK(
      hex(std::span(bytes).subspan(8, 40)) ==
      [] {  // version
        std::string version(4, '\0');
        cohort::detail::put_little(reinterpret_cast<unsigned char*>(version.data()), protocol_version);
        return hex({reinterpret_cast<const unsigned char*>(version.data()), 4});
      }() +
          "02"
          "00"
          "6712"  // role, reserved, port
          +
          [] {  // job
            std::string job(8, '\0');
            cohort::detail::put_little(reinterpret_cast<unsigned char*>(job.data()), job_id("run"));
            return hex({reinterpret_cast<const unsigned char*>(job.data()), 8});
          }() +
          "03000000"
          "63000000"  // epoch, pid
          "08000000"
          "05000000"
          "02000000"
          "01000000");  // world size, rank, target, lane
}

TEST_CASE("hello: each field that differs is named, with both values") {
  const auto verdict_of = [](const hello& h) { return judge(encode(h), listener()); };
  CHECK(verdict_of(sample()).accepted());
  const auto changed = [&](auto change) {
    hello h = sample();
    change(h);
    return verdict_of(h);
  };
  CHECK(changed([](hello& h) { h.version = 9; }) == hello_verdict{hello_field::version, protocol_version, 9});
  // The same protocol, another minor version of the library.
  CHECK(changed([](hello& h) { h.version += 0x10000; }).field == hello_field::version);
  CHECK(changed([](hello& h) { h.role = connection_role::store; }) == hello_verdict{hello_field::role, 2, 1});
  CHECK(changed([](hello& h) { h.job = 1; }).field == hello_field::job);
  CHECK(changed([](hello& h) { h.epoch = 2; }) == hello_verdict{hello_field::epoch, 3, 2});
  CHECK(changed([](hello& h) { h.world_size = 4; }) == hello_verdict{hello_field::world_size, 8, 4});
  CHECK(changed([](hello& h) { h.rank = 8; }) == hello_verdict{hello_field::rank, 7, 8});
  CHECK(changed([](hello& h) { h.rank = -2; }) == hello_verdict{hello_field::rank, 7, -2});
  CHECK(changed([](hello& h) { h.target = 3; }) == hello_verdict{hello_field::target, 2, 3});
  CHECK(changed([](hello& h) { h.proof[31] = 1; }) == hello_verdict{hello_field::proof, 0, 1});
  CHECK(changed([](hello& h) { h.target = -1; }).accepted());
  CHECK(changed([](hello& h) {
          h.port = 1;
          h.pid = 2;
          h.lane = 3;
        }).accepted());
  hello_bytes alien = encode(sample());
  alien[0] = 'G';
  CHECK(judge(alien, listener()).field == hello_field::magic);

  hello_expectation any = listener();
  any.world_size = 0;
  any.rank = -1;
  hello other = sample();
  other.world_size = 3;
  other.rank = 100;
  CHECK(judge(encode(other), any).accepted());
}

TEST_CASE("hello: codes and words of the refusals") {
  using cohort::errc;
  CHECK(error_code_of(hello_field::version) == errc::version_mismatch);
  CHECK(error_code_of(hello_field::job) == errc::wrong_job);
  CHECK(error_code_of(hello_field::epoch) == errc::wrong_job);
  CHECK(error_code_of(hello_field::proof) == errc::wrong_job);
  CHECK(error_code_of(hello_field::world_size) == errc::world_size_mismatch);
  CHECK(error_code_of(hello_field::magic) == errc::protocol_error);
  CHECK(error_code_of(hello_field::target) == errc::protocol_error);
  CHECK(explain({hello_field::world_size, 4, 3}) == "the world sizes differ: it has 4, this process has 3");
  CHECK(
      explain({hello_field::version, 0x00010001, 0x00020001}) ==
      "it is cohort 0.1 (protocol 1), this process is cohort 0.2 (protocol 1): build every rank with the same version");
  CHECK(explain({hello_field::epoch, 4, 3}) == "it is in another epoch of the job: it has 4, this process has 3");
  CHECK(explain({hello_field::role, 1, 2}) == "it serves store connections, not data ones");
  CHECK(explain({hello_field::target, 1, 2}) == "it is rank 1, this process meant to reach rank 2");
  CHECK(explain({hello_field::proof, 0, 1}).find("it has no secret, this process has one") == 0);
  CHECK(explain({hello_field::proof, 1, 0}).find("it has a secret, this process has none") == 0);
}

TEST_CASE("hello: without the secret nothing of a hello can be made or changed") {
  hello_expectation mine = listener();
  mine.secret = secret;
  const hello_bytes good = sealed(sample(), secret);
  CHECK(judge(good, mine).accepted());
  CHECK(judge(sealed(sample(), "another secret!!"), mine) == hello_verdict{hello_field::proof, 1, 1});
  CHECK(judge(encode(sample()), mine) == hello_verdict{hello_field::proof, 1, 0});
  CHECK(judge(good, listener()) == hello_verdict{hello_field::proof, 0, 1});
  for (std::size_t at = 0; at < good.size(); ++at) {
    hello_bytes changed = good;
    changed[at] ^= 1;
    CHECK_FALSE(judge(changed, mine).accepted());
  }
}

TEST_CASE("hello: a reply answers one hello, and only who knows the secret can give it") {
  const hello asked = sample();
  hello_reply r;
  r.verdict = {hello_field::world_size, 8, -4};
  r.rank = 2;
  r.pid = 77;
  const hello_bytes bytes = sealed(r, asked, secret);
  std::optional<hello_reply> back = decode_reply(bytes);
  REQUIRE(back.has_value());
  CHECK(back->verdict == r.verdict);
  CHECK(back->rank == 2);
  CHECK(back->pid == 77);
  CHECK(begins_as_reply(std::span(bytes).first<8>()));
  CHECK(is_genuine(bytes, asked, secret));
  CHECK_FALSE(is_genuine(bytes, asked, "another secret!!"));
  CHECK_FALSE(is_genuine(bytes, asked, ""));
  CHECK_FALSE(is_genuine(sealed(r, asked, ""), asked, secret));
  hello earlier = asked;
  earlier.nonce[0] ^= 1;
  CHECK_FALSE(is_genuine(bytes, earlier, secret));
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    hello_bytes changed = bytes;
    changed[at] ^= 1;
    CHECK_FALSE(is_genuine(changed, asked, secret));
  }
  // A hello that comes back is no reply: that is what a connection to oneself looks like.
  CHECK_FALSE(decode_reply(sealed(asked, secret)).has_value());
}
