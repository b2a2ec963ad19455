// SPDX-License-Identifier: BSL-1.0
// The store over TLS: everything that a client may ask, servers and clients that have no right to be heard, and a forwarder
// between them that keeps a copy of every byte.
#include "tcp_store_support.hpp"

#ifdef COHORT_WITH_TLS

#include "support/tls_pair.hpp"

#include <cohort/transport/tcp_async_store.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace store_test;
using harness::tls_files;
using tcp = boost::asio::ip::tcp;

namespace {

tcp_store_server_options serving(const cohort::tls_options& files) {
  tcp_store_server_options options;
  options.tls = files;
  return options;
}

tcp_store_options asking(const endpoint& where, const cohort::tls_options& files) {
  tcp_store_options options;
  options.where = where;
  options.tls = files;
  return options;
}

/// Between a client and a server: hands on what either says, and keeps it.
class forwarder {
 public:
  explicit forwarder(const endpoint& server)
      : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}), client_(io_), server_(io_) {
    acceptor_.async_accept(client_, [this, server](const boost::system::error_code& failure) {
      if (failure) return;
      server_.connect({boost::asio::ip::make_address(server.host), server.port});
      hand_on(client_, server_, there_);
      hand_on(server_, client_, back_);
    });
    thread_ = std::thread([this] { io_.run(); });
  }
  forwarder(const forwarder&) = delete;
  forwarder& operator=(const forwarder&) = delete;
  ~forwarder() { (void)finish(); }

  [[nodiscard]] endpoint where() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  /// All that was said. Nothing is handed on any more.
  [[nodiscard]] const std::string& finish() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
    return seen_;
  }

 private:
  using buffer = std::array<char, 4096>;

  void hand_on(tcp::socket& from, tcp::socket& to, buffer& room) {
    from.async_read_some(boost::asio::buffer(room), [&](const boost::system::error_code& failure, std::size_t n) {
      boost::system::error_code ignored;
      if (failure) {
        to.shutdown(tcp::socket::shutdown_send, ignored);
        return;
      }
      seen_.append(room.data(), n);
      boost::asio::write(to, boost::asio::buffer(room, n), ignored);
      hand_on(from, to, room);
    });
  }

  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_;
  tcp::socket client_;
  tcp::socket server_;
  buffer there_{};
  buffer back_{};
  std::string seen_{};
  std::thread thread_{};
};

std::string words_of_failure(const std::function<void()>& attempt, errc expected = errc::tls_failed) {
  try {
    attempt();
  } catch (const cohort::error& e) {
    CHECK(e.condition() == expected);
    return e.what();
  }
  return "nothing failed";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A client may have read the alert before the server, whose TLS library sends it, has written down why.
bool remembers(const tcp_store_server& server, const std::string& part) {
  return eventually([&] { return says(server.last_refusal(), part); });
}

}  // namespace

TEST_CASE("tls store: every call, short and long values, and calls that wait") {
  const tcp_store_server server(serving(tls_files().options()));
  tcp_store store(asking(server.where(), tls_files().options("chain")), soon());
  const std::string value(std::size_t{3} << 20, 'v');
  check_queue(store);
  check_values(store);
  check_several(store);
  store.set("long", value, soon());
  CHECK(store.get("long", soon()) == value);
  cohort::async_store s = cohort::async_tcp_store(asking(server.where(), tls_files().options()), soon());
  auto later = s.get("later");
  auto now = s.set("now", value);
  now.wait();
  store.set("later", "1", soon());
  CHECK(later.wait() == "1");
}

TEST_CASE("tls store: an item that was taken does not come back when the last handle goes") {
  const tcp_store_server server(serving(tls_files().options()));
  tcp_store store(asking(server.where(), tls_files().options()), soon());
  store.queue_push("q", "item", soon());
  {
    cohort::async_store s = cohort::async_tcp_store(asking(server.where(), tls_files().options()), soon());
    auto pop = s.queue_pop("q");
    CHECK(eventually([&] { return pop.ready(); }));
    auto large = s.set("large", std::string(std::size_t{3} << 20, 'v'));
    CHECK(pop.wait() == "item");
  }
  CHECK(eventually([&] { return server.connections() == 1; }));
  CHECK(store.queue_len("q", soon()) == 0);
}

TEST_CASE("tls store: a forwarder sees neither keys nor values nor hellos, without TLS it sees them all") {
  for (const bool sealed : {false, true}) {
    CAPTURE(sealed);
    const cohort::tls_options files = sealed ? tls_files().options() : cohort::tls_options{};
    const tcp_store_server server(serving(files));
    forwarder between(server.where());
    {
      tcp_store store(asking(between.where(), files), soon());
      store.set("the name of a key", "what nobody else may know", soon());
      CHECK(store.get("the name of a key", soon()) == "what nobody else may know");
    }
    const std::string& seen = between.finish();
    CHECK(seen.size() > 300);
    for (const char* said : {"the name of a key", "what nobody else may know", "cohort>\n", "cohort<\n"}) {
      CAPTURE(said);
      CHECK(says(seen, said) == !sealed);
    }
  }
}

TEST_CASE("tls store: a client without TLS is told so, and the server remembers it") {
  const tcp_store_server server(serving(tls_files().options()));
  CHECK(server.last_refusal() == "");
  const std::string text = words_of_failure([&] { (void)connect_to(server); });
  CHECK(text ==
        "connect: the store at " + to_string(server.where()) +
            " refused this process: it speaks TLS 1.3 alone, this process does not: set COHORT_TLS_CERTIFICATE, "
            "COHORT_TLS_KEY and COHORT_TLS_AUTHORITY on every rank or on none");
  CHECK(says(server.last_refusal(), "a connection from 127.0.0.1:"));
  CHECK(says(server.last_refusal(), " failed meanwhile: it does not speak TLS, and this process expects TLS 1.3"));
  tcp_store(asking(server.where(), tls_files().options()), soon()).set("still", "serving", soon());
}

TEST_CASE("tls store: a server without TLS is found out, and remembers who came") {
  const tcp_store_server server{tcp_store_server_options{}};
  const std::string text =
      words_of_failure([&] { (void)tcp_store(asking(server.where(), tls_files().options()), soon()); });
  CHECK(says(text, "connect: the store at " + to_string(server.where()) + " cannot be used: it does not speak TLS"));
  CHECK(says(server.last_refusal(), " failed meanwhile: it speaks TLS, this process does not"));
  connect_to(server).set("still", "serving", soon());
}

namespace {

/// A TLS server that has this certificate and asks for one of nobody; it takes one client.
class other_server {
 public:
  explicit other_server(const std::string& certificate, const std::string& key)
      : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free),
        acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
    REQUIRE(SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM) == 1);
    thread_ = std::thread([this] {
      tcp::socket guest = acceptor_.accept();
      const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context_.get()), &SSL_free);
      SSL_set_fd(ssl.get(), guest.native_handle());
      (void)SSL_accept(ssl.get());
      ERR_clear_error();
    });
  }
  ~other_server() { thread_.join(); }
  other_server(const other_server&) = delete;
  other_server& operator=(const other_server&) = delete;
  [[nodiscard]] endpoint where() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }

 private:
  boost::asio::io_context io_{1};
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  tcp::acceptor acceptor_;
  std::thread thread_{};
};

}  // namespace

TEST_CASE("tls store: a server with a certificate that has expired, or of another authority, is not trusted") {
  const std::string self_signed = X509_verify_cert_error_string(X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
  for (const auto& [name, words] : {std::pair<std::string, std::string>{"expired", "certificate has expired"},
                                    std::pair<std::string, std::string>{"stranger", self_signed}}) {
    CAPTURE(name);
    const other_server server(tls_files().at(name + ".pem"), tls_files().at(name + ".key"));
    const std::string text =
        words_of_failure([&] { (void)tcp_store(asking(server.where(), tls_files().options()), soon()); });
    CHECK(text == "connect: the store at " + to_string(server.where()) +
                      " cannot be used: TLS: its certificate is refused: " + words +
                      "; expected one that is valid now and signed by the authority of this process "
                      "(COHORT_TLS_AUTHORITY)");
  }
}

namespace {

/// What a TLS client that trusts everybody and shows this certificate (none: "") hears.
std::string alert_to(const endpoint& where, const std::string& certificate) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!certificate.empty()) {
    REQUIRE(SSL_CTX_use_certificate_chain_file(context.get(), tls_files().at(certificate + ".pem").c_str()) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(context.get(), tls_files().at(certificate + ".key").c_str(),
                                        SSL_FILETYPE_PEM) == 1);
  }
  boost::asio::io_context io;
  tcp::socket socket(io);
  socket.connect({boost::asio::ip::make_address(where.host), where.port});
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(ssl.get(), socket.native_handle());
  char answer = 0;
  if (SSL_connect(ssl.get()) == 1 && SSL_read(ssl.get(), &answer, 1) > 0) return "an answer";
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "nothing" : reason;
}

}  // namespace

TEST_CASE("tls store: clients without a certificate, with an expired one or another authority's are not heard") {
  const tcp_store_server server(serving(tls_files().options()));
  tcp_store store(asking(server.where(), tls_files().options()), soon());
  CHECK(alert_to(server.where(), "") == "tlsv13 alert certificate required");
  CHECK(remembers(server, "failed meanwhile: TLS: peer did not return a certificate"));
  CHECK(alert_to(server.where(), "expired") == "sslv3 alert certificate expired");
  CHECK(remembers(server, "TLS: its certificate is refused: certificate has expired; expected one that is"));
  CHECK(alert_to(server.where(), "stranger") == "tlsv1 alert unknown ca");
  CHECK(alert_to(server.where(), "server_only") == "sslv3 alert unsupported certificate");
  store.set("still", "serving", soon());
  CHECK(store.get("still", soon()) == "serving");
}

TEST_CASE("tls store: noise, half a handshake and silence cost the server nothing") {
  tcp_store_server_options options = serving(tls_files().options());
  options.hello_timeout = std::chrono::milliseconds(200);
  const tcp_store_server server(options);
  tcp_store store(asking(server.where(), tls_files().options()), soon());
  raw_client noise(server.where());
  noise.send(std::string(3000, 'x'));
  // It is told in plain text that it would need TLS, and shown out.
  CHECK(noise.receive(4096).size() == cohort::transport::hello_size);
  raw_client half(server.where());
  half.send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  CHECK(half.receive(1).empty());
  raw_client broken(server.where());
  broken.send(std::string("\x16\x03\x01\x00\x05", 5) + "abcde");
  CHECK(broken.receive(4096).size() < 16);  // an alert at most
  raw_client silent(server.where());
  CHECK(silent.receive(1).empty());
  store.set("still", "serving", soon());
  CHECK(store.get("still", soon()) == "serving");
}

TEST_CASE("tls store: the secret is asked for inside") {
  tcp_store_server_options options = serving(tls_files().options());
  options.secret = "0123456789abcdef";
  const tcp_store_server server(options);
  tcp_store_options client = asking(server.where(), tls_files().options());
  const std::string text = words_of_failure([&] { (void)tcp_store(client, soon()); }, errc::wrong_job);
  CHECK(says(text, "it has a secret, this process has none"));
  client.secret = options.secret;
  tcp_store(client, soon()).set("a", "b", soon());
}

#else

TEST_CASE("tls") { std::puts("SKIPPED: no OpenSSL here (Debian 12: apt-get install libssl-dev)"); }

#endif
