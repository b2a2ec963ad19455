// SPDX-License-Identifier: BSL-1.0
// One TLS connection without any network: sockets that are full after a few bytes, pieces of every shape, keys that are
// renewed, peers that go without a word, and the bytes themselves as an eavesdropper sees them.
#include <doctest/doctest.h>

#ifdef COHORT_WITH_TLS

#include "support/tls_pair.hpp"

#include <cohort/transport/impl/tls_context_openssl.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace cohort::transport;
using harness::shake_hands;
using harness::socket_pair;
using harness::tls_files;

namespace {

std::vector<std::byte> noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> all(bytes);
  for (std::byte& b : all) b = static_cast<std::byte>(random());
  return all;
}

/// Pieces of random lengths, some of them empty.
std::vector<piece> cut(std::span<std::byte> bytes, std::mt19937& random) {
  std::vector<piece> pieces;
  while (!bytes.empty()) {
    const std::size_t longest = std::size_t{1} << (random() % 18);
    const std::size_t part = std::min<std::size_t>(random() % (longest + 1), bytes.size());
    pieces.push_back({bytes.data(), part});
    bytes = bytes.subspan(part);
  }
  return pieces;
}

/// One direction: what is left to be moved.
struct flow {
  flow(std::size_t bytes, unsigned seed) : source(noise(bytes, seed)), target(bytes), random(seed) {}
  void send(tls_session& by) {
    std::vector<piece> pieces = cut(std::span(source).subspan(sent), random);
    boost::system::error_code failure;
    sent += by.send(pieces, failure);
    REQUIRE_MESSAGE(!failure, failure.message());
  }
  void receive(tls_session& by) {
    const std::size_t most = std::min<std::size_t>(1 + random() % 100000, target.size() - received);
    std::vector<piece> pieces = cut(std::span(target).subspan(received, most), random);
    boost::system::error_code failure;
    received += by.receive(pieces, failure);
    REQUIRE_MESSAGE(!failure, failure.message());
  }
  [[nodiscard]] bool over() const { return received == target.size(); }

  std::vector<std::byte> source;
  std::vector<std::byte> target;
  std::mt19937 random;
  std::size_t sent = 0;
  std::size_t received = 0;
};

struct connection {
  explicit connection(int room = 0, std::uint64_t records_per_key = tls_detail::session::records_per_key)
      : wire(room),
        context(tls_detail::file_reader(files).read()),
        client(context.get(), wire[0], tls_side::client, records_per_key),
        server(context.get(), wire[1], tls_side::server, records_per_key) {
    boost::system::error_code a;
    boost::system::error_code b;
    shake_hands(client, server, a, b);
    REQUIRE_MESSAGE(!a, a.message());
    REQUIRE_MESSAGE(!b, b.message());
  }
  cohort::tls_options files = tls_files().options();
  socket_pair wire;
  tls_detail::context_pointer context;
  tls_detail::session client;
  tls_detail::session server;
};

boost::system::error_code failure_of_receive(tls_session& s) {
  std::byte room[64];
  const piece into{room, sizeof room};
  boost::system::error_code failure;
  for (int i = 0; i < 100 && !failure; ++i) (void)s.receive({&into, 1}, failure);
  return failure;
}

void move_both_ways(connection& c, std::size_t bytes) {
  flow there(bytes, 1);
  flow back(bytes / 2 + 1, 2);
  for (int turn = 0; turn < 1000000 && !(there.over() && back.over()); ++turn) {
    there.send(c.client);
    back.send(c.server);
    there.receive(c.server);
    back.receive(c.client);
  }
  CHECK(there.source == there.target);
  CHECK(back.source == back.target);
}

}  // namespace

TEST_CASE("tls: bytes cross both ways in pieces of every shape, through sockets of every size") {
  for (const int room : {2048, 20000, 0}) {
    CAPTURE(room);
    connection c(room);
    move_both_ways(c, 3000000);
  }
}

TEST_CASE("tls: keys are renewed on the way") {
  connection c(20000, 3);
  move_both_ways(c, 1000000);
}

TEST_CASE(
    "tls: a send that has no room takes nothing, one that has takes all but the last byte, which may lie elsewhere by "
    "then") {
  connection c(4096);
  std::vector<std::byte> first = noise(200000, 3);
  const std::vector<std::byte> wanted = first;
  const piece all{first.data(), first.size()};
  boost::system::error_code failure;
  std::size_t sent = 0;
  std::vector<std::byte> target(first.size());
  std::size_t got = 0;
  // The last call takes nothing at all: another message could not come in between.
  for (std::size_t n = 1; n > 0;) {
    const piece rest{first.data() + sent, first.size() - sent};
    n = c.client.send({&rest, 1}, failure);
    sent += n;
  }
  REQUIRE(sent < all.bytes);
  std::vector<std::byte> elsewhere(first.begin() + static_cast<std::ptrdiff_t>(sent), first.end());
  std::fill(first.begin(), first.end(), std::byte{0});
  std::size_t given = 0;
  while (got < target.size()) {
    const piece rest{elsewhere.data() + given, elsewhere.size() - given};
    given += c.client.send({&rest, 1}, failure);
    const piece room{target.data() + got, target.size() - got};
    got += c.server.receive({&room, 1}, failure);
    REQUIRE(!failure);
  }
  CHECK(given == elsewhere.size());
  CHECK(target == wanted);
}

TEST_CASE("tls: what was read ahead is told of, and only while there is some") {
  connection c;
  std::vector<std::byte> bytes = noise(5000, 4);
  const piece all{bytes.data(), bytes.size()};
  boost::system::error_code failure;
  REQUIRE(c.client.send({&all, 1}, failure) == bytes.size());
  std::vector<std::byte> target(bytes.size());
  std::size_t got = 0;
  while (got < target.size()) {
    const piece room{target.data() + got, 100};
    REQUIRE(c.server.receive({&room, 1}, failure) == 100);
    got += 100;
    // The socket is empty after the first of them.
    CHECK(c.server.holds_bytes() == (got < target.size()));
  }
  const piece room{target.data(), 1};
  CHECK(c.server.receive({&room, 1}, failure) == 0);
  CHECK(!failure);
  CHECK(!c.server.holds_bytes());
  CHECK(target == bytes);
}

TEST_CASE("tls: an eavesdropper sees nothing of what is said") {
  connection c;
  std::string said;
  while (said.size() < 100000) said += "attack at dawn ";
  const piece all{reinterpret_cast<std::byte*>(said.data()), said.size()};
  boost::system::error_code failure;
  REQUIRE(c.client.send({&all, 1}, failure) > 0);
  std::string seen(1 << 20, '\0');
  const ssize_t n = ::recv(c.wire[1], seen.data(), seen.size(), MSG_DONTWAIT);
  REQUIRE(n > 10000);
  seen.resize(static_cast<std::size_t>(n));
  CHECK(seen.find("attack") == std::string::npos);
  CHECK(seen.find("dawn") == std::string::npos);
}

TEST_CASE("tls: the end of a connection is one, announced or not, behind what was sent before") {
  for (const bool announced : {true, false}) {
    CAPTURE(announced);
    connection c;
    std::vector<std::byte> bytes = noise(20, 5);
    const piece all{bytes.data(), bytes.size()};
    boost::system::error_code failure;
    REQUIRE(c.client.send({&all, 1}, failure) == 20);
    if (announced) c.client.say_goodbye();
    c.wire.close(0);
    std::vector<std::byte> target(100);
    const piece room{target.data(), target.size()};
    REQUIRE(c.server.receive({&room, 1}, failure) == 20);
    CHECK(!failure);
    CHECK(std::equal(bytes.begin(), bytes.end(), target.begin()));
    CHECK(failure_of_receive(c.server) == boost::asio::error::eof);
    CHECK(failure_of_receive(c.server) == boost::asio::error::eof);
  }
}

TEST_CASE("tls: a sender whose peer is gone is told, and no signal ends the process") {
  connection c;
  c.wire.close(1);
  std::vector<std::byte> bytes = noise(1000, 6);
  const piece all{bytes.data(), bytes.size()};
  boost::system::error_code failure;
  for (int i = 0; i < 10 && !failure; ++i) (void)c.client.send({&all, 1}, failure);
  CHECK(failure == boost::system::errc::broken_pipe);
  c.client.say_goodbye();
}

TEST_CASE("tls: a byte that was altered on the way is noticed, whichever it is") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{4}, std::size_t{5}, std::size_t{500}}) {
    CAPTURE(at);
    connection c;
    std::vector<std::byte> bytes = noise(1000, 7);
    const piece all{bytes.data(), bytes.size()};
    boost::system::error_code failure;
    REQUIRE(c.client.send({&all, 1}, failure) == bytes.size());
    std::string sealed(4096, '\0');
    const ssize_t n = ::recv(c.wire[1], sealed.data(), sealed.size(), MSG_DONTWAIT);
    REQUIRE(n > 1000);
    sealed[at] = static_cast<char>(sealed[at] ^ 1);
    REQUIRE(::send(c.wire[0], sealed.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL) == n);
    c.wire.close(0);
    const boost::system::error_code found = failure_of_receive(c.server);
    CHECK(found.failed());
    // A length that was altered may leave a record without its end.
    CHECK((is_of_tls(found) || (at == 4 && found == boost::asio::error::eof)));
    CHECK(ERR_peek_error() == 0);
  }
}

TEST_CASE("tls: whoever speaks something else is not taken for a peer") {
  socket_pair wire;
  const auto context = open_tls(tls_files().options());
  const auto server = context->open(wire[1], tls_side::server);
  const std::string_view other = "GET / HTTP/1.1\r\n\r\n";
  REQUIRE(::send(wire[0], other.data(), other.size(), MSG_NOSIGNAL) > 0);
  boost::system::error_code failure;
  CHECK(server->shake_hands(failure) == tls_session::need::nothing);
  CHECK(failure == tls_error(tls_trouble::no_tls));
  CHECK(failure.message() ==
        "it does not speak TLS, and this process expects TLS 1.3: set COHORT_TLS_CERTIFICATE, COHORT_TLS_KEY and "
        "COHORT_TLS_AUTHORITY on every rank or on none");
}

namespace {

std::string in_openssls_words(int verdict) { return X509_verify_cert_error_string(verdict); }

/// What each of two ends says that have these files.
std::pair<std::string, std::string> words_of(const cohort::tls_options& of_client,
                                             const cohort::tls_options& of_server) {
  socket_pair wire;
  const auto client = open_tls(of_client)->open(wire[0], tls_side::client);
  const auto server = open_tls(of_server)->open(wire[1], tls_side::server);
  boost::system::error_code a;
  boost::system::error_code b;
  shake_hands(*client, *server, a, b);
  // A client learns that it was refused when it reads.
  if (!a && b) a = failure_of_receive(*client);
  if (!b && a) (void)server->shake_hands(b);
  CHECK(ERR_peek_error() == 0);
  return {a ? a.message() : "", b ? b.message() : ""};
}

const std::string expected_certificate =
    "; expected one that is valid now and signed by the authority of this process (COHORT_TLS_AUTHORITY)";

}  // namespace

TEST_CASE("tls: two ends with certificates of one authority agree, through another one if need be") {
  const auto same = words_of(tls_files().options(), tls_files().options());
  CHECK(same.first == "");
  CHECK(same.second == "");
  const auto through_another = words_of(tls_files().options("chain"), tls_files().options());
  CHECK(through_another.first == "");
  CHECK(through_another.second == "");
}

TEST_CASE("tls: a certificate of another authority is refused at both ends, in OpenSSL's own words") {
  const cohort::tls_options stranger = tls_files().options("stranger", "stranger_authority.pem");
  const auto client_is_right = words_of(tls_files().options(), stranger);
  CHECK(client_is_right.first == "TLS: its certificate is refused: " +
                                     in_openssls_words(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN) + expected_certificate);
  CHECK(client_is_right.second.starts_with("TLS: it has refused this process: tlsv1 alert unknown ca; expected"));
  // A stranger that trusts everybody: the server alone refuses.
  cohort::tls_options trusting = stranger;
  trusting.authority = tls_files().at("both.pem");
  {
    std::ofstream both(trusting.authority);
    for (const char* each : {"authority.pem", "stranger_authority.pem"})
      both << std::ifstream(tls_files().at(each)).rdbuf();
  }
  const auto server_is_right = words_of(trusting, tls_files().options());
  CHECK(server_is_right.second == "TLS: its certificate is refused: " +
                                      in_openssls_words(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN) + expected_certificate);
  CHECK(server_is_right.first.starts_with("TLS: it has refused this process: tlsv1 alert unknown ca; expected"));
}

TEST_CASE("tls: files that cannot work are refused before anybody connects, naming file and variable") {
  const auto refusal = [](const cohort::tls_options& files) -> std::string {
    try {
      (void)open_tls(files);
    } catch (const cohort::error& e) {
      CHECK(e.condition() == (files.key.empty() ? cohort::errc::invalid_argument : cohort::errc::tls_failed));
      CHECK(ERR_peek_error() == 0);
      return e.what();
    }
    return "nothing was refused";
  };
  const auto& at = tls_files();
  const std::string in_authority =
      "; expected one that is valid now, for servers and clients, and signed by the authority in \"" +
      at.at("authority.pem") + "\" (COHORT_TLS_AUTHORITY)";
  const std::string certificate = "TLS: the certificate file \"";
  const std::string key = "TLS: the key file \"";

  CHECK(open_tls({}) == nullptr);
  CHECK(refusal(at.options("expired")) ==
        certificate + at.at("expired.pem") +
            "\" (COHORT_TLS_CERTIFICATE): no rank would accept it: certificate has expired" + in_authority);
  CHECK(refusal(at.options("stranger")) ==
        certificate + at.at("stranger.pem") + "\" (COHORT_TLS_CERTIFICATE): no rank would accept it: " +
            in_openssls_words(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY) + in_authority);
  CHECK(refusal(at.options("server_only")) == certificate + at.at("server_only.pem") +
                                                  "\" (COHORT_TLS_CERTIFICATE): no rank would accept it: " +
                                                  in_openssls_words(X509_V_ERR_INVALID_PURPOSE) + in_authority);
  cohort::tls_options files = at.options();
  files.key = at.at("stranger.key");
  CHECK(refusal(files) ==
        key + files.key +
            "\" (COHORT_TLS_KEY): key values mismatch; expected a private key without a passphrase that is "
            "the certificate's");
  files.key = at.at("locked.key");
  CHECK(refusal(files).find("expected a private key without a passphrase") != std::string::npos);
  files.key = at.at("open.key");
  CHECK(refusal(files) ==
        key + files.key + "\" (COHORT_TLS_KEY): everybody on this host may use this file: run chmod o= on it");
  files.key = at.at("nowhere.key");
  CHECK(refusal(files) == key + files.key + "\" (COHORT_TLS_KEY): No such file or directory");
  files.key = "";
  CHECK(
      refusal(files) ==
      "tls_options: no key is named; expected the files of a certificate, its key and the job's authority, or none of "
      "them");
  files = at.options();
  files.certificate = at.at("nowhere.pem");
  CHECK(refusal(files) == certificate + files.certificate + "\" (COHORT_TLS_CERTIFICATE): No such file or directory");
  files = at.options();
  files.authority = at.at("rank.key");
  CHECK(refusal(files).starts_with("TLS: the authority file \"" + files.authority + "\" (COHORT_TLS_AUTHORITY): "));
}

#else

#include <cstdio>

TEST_CASE("tls") { std::puts("SKIPPED: no OpenSSL here (Debian 12: apt-get install libssl-dev)"); }

#endif
