// SPDX-License-Identifier: BSL-1.0
// Jobs whose connections are encrypted, and jobs of which one rank has no TLS, or files that the others refuse: both ends
// must say so within the join timeout. Strangers without a certificate change nothing.
#include "fault_support.hpp"

#ifdef COHORT_WITH_TLS

#include "../support/listening_ports.hpp"
#include "../support/tls_pair.hpp"

#include <cohort/transport/hello.hpp>

#include <openssl/ssl.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cohort;
using namespace faults;
using harness::listening_ports;
using harness::run_ranks;
using harness::tls_files;
using harness::variables;

namespace {

using world_type = communicator<cpu>;

const variables no_tls{{"COHORT_TLS_CERTIFICATE", std::nullopt},
                       {"COHORT_TLS_KEY", std::nullopt},
                       {"COHORT_TLS_AUTHORITY", std::nullopt},
                       {"COHORT_SHM", "0"}};

variables with(const tls_options& files) {
  return {{"COHORT_TLS_CERTIFICATE", files.certificate},
          {"COHORT_TLS_KEY", files.key},
          {"COHORT_TLS_AUTHORITY", files.authority},
          {"COHORT_SHM", "0"}};
}

/// Ranks that meet over sockets and do nothing else, each with variables of its own besides a short join timeout.
std::vector<harness::rank_result> meet(const std::vector<variables>& of_ranks, const variables& of_all = {}) {
  harness::rank_options options;
  options.environment = {{"COHORT_JOIN_TIMEOUT", "3"}};
  options.environment.insert(options.environment.end(), of_all.begin(), of_all.end());
  return run_ranks(
      static_cast<int>(of_ranks.size()),
      [&](int rank) {
        for (const auto& [name, value] : of_ranks[static_cast<std::size_t>(rank)]) {
          if (value) {
            ::setenv(name.c_str(), value->c_str(), 1);
          } else {
            ::unsetenv(name.c_str());
          }
        }
        const auto rank_main = [](world_type world) -> task<> { co_await world.barrier(); };
        return cohort::run(rank_main);
      },
      options);
}

void says(const harness::rank_result& r, const std::string& words) {
  CHECK(r.exit_code != 0);
  CHECK_MESSAGE(contains(r.err, words), words << "\nis not in\n" << harness::describe({r}));
}

const std::string everywhere =
    "set COHORT_TLS_CERTIFICATE, COHORT_TLS_KEY and COHORT_TLS_AUTHORITY on every rank or on none";

task<> all_kinds_of_work(world_type& world) {
  for (int i = 0; i < 5; ++i) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{700001}}) {
      std::vector<int> v(count, world.rank() + i);
      co_await world.all_reduce(v, sum{});
      const int n = world.size();
      harness::expect(v == std::vector<int>(count, n * (n - 1) / 2 + n * i), "the right sum");
    }
  }
}

/// Three ranks with TLS.
template <class Body>
void expect_all_well(const Body& body) {
  harness::rank_options options;
  options.environment = with(tls_files().options());
  const auto ranks = run_ranks(3, body, options);
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

}  // namespace

TEST_CASE("tls: ranks with files of one authority work together, with certificates of different depth") {
  expect_all_well([](int rank) {
    for (const auto& [name, value] : with(tls_files().options(rank == 1 ? "chain" : "rank"))) {
      ::setenv(name.c_str(), value->c_str(), 1);
    }
    const auto rank_main = [](world_type world) -> task<> {
      auto work = all_kinds_of_work(world);
      co_await work;
    };
    return cohort::run(rank_main);
  });
}

TEST_CASE("tls: on a rank without it the others are named, whichever rank that is") {
  const variables yes = with(tls_files().options());
  SUBCASE("rank 1 has none") {
    const auto ranks = meet({yes, no_tls});
    says(ranks[1], "refused this process: it speaks TLS 1.3 alone, this process does not: " + everywhere);
    says(ranks[0], "1/2 joined, missing rank 1");
    says(ranks[0], "failed meanwhile: it does not speak TLS, and this process expects TLS 1.3: " + everywhere);
  }
  SUBCASE("rank 0 has none") {
    const auto ranks = meet({no_tls, yes});
    says(ranks[1], "connect: the store at 127.0.0.1:");
    says(ranks[1], "cannot be used: it does not speak TLS, and this process expects TLS 1.3: " + everywhere);
    says(ranks[0], "1/2 joined, missing rank 1");
    says(ranks[0], "failed meanwhile: it speaks TLS, this process does not: " + everywhere);
  }
}

TEST_CASE("tls: where the ranks meet at a file, the liveness service is the first to notice") {
  const variables yes = with(tls_files().options());
  const variables file{{"COHORT_INIT", "file://" + tls_files().at("meeting")}};
  SUBCASE("rank 1 has none") {
    const auto ranks = meet({yes, no_tls}, file);
    says(ranks[1], "rank 0 refused this process: it speaks TLS 1.3 alone, this process does not: " + everywhere);
    says(ranks[0], "failed meanwhile: it does not speak TLS");
  }
  SUBCASE("rank 0 has none") {
    const auto ranks = meet({no_tls, yes}, file);
    says(ranks[1], "rank 0 does not answer: it does not speak TLS, and this process expects TLS 1.3: " + everywhere);
    says(ranks[0], "failed meanwhile: it speaks TLS, this process does not: " + everywhere);
  }
  SUBCASE("rank 1 has another authority's") {
    const auto ranks = meet({yes, with(tls_files().options("stranger", "stranger_authority.pem"))}, file);
    says(ranks[1], "rank 0 does not answer: TLS: its certificate is refused: ");
    says(ranks[0], "failed meanwhile: TLS: it has refused this process: tlsv1 alert unknown ca");
  }
  std::error_code ignored;
  std::filesystem::remove(tls_files().at("meeting"), ignored);
}

TEST_CASE("tls: a rank of another authority is refused at both ends, in OpenSSL's words") {
  const std::string self_signed = X509_verify_cert_error_string(X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
  const auto ranks =
      meet({with(tls_files().options()), with(tls_files().options("stranger", "stranger_authority.pem"))});
  says(ranks[1], "connect: the store at 127.0.0.1:");
  says(ranks[1],
       "cannot be used: TLS: its certificate is refused: " + self_signed + "; expected one that is valid now");
  says(ranks[0], "1/2 joined, missing rank 1");
  says(ranks[0], "a connection from 127.0.0.1:");
  says(ranks[0], "failed meanwhile: TLS: it has refused this process: tlsv1 alert unknown ca");
}

TEST_CASE("tls: what is wrong with the files or the variables is said by the rank that has them, at once") {
  const auto files = tls_files().options();
  struct wrong {
    variables environment;
    std::string words;
  };
  const wrong all[] = {
      {{{"COHORT_TLS_KEY", std::nullopt}},
       "COHORT_TLS_CERTIFICATE is set but COHORT_TLS_KEY is not; set it, or none of the three COHORT_TLS_ variables"},
      {{{"COHORT_TLS_AUTHORITY", std::nullopt}},
       "COHORT_TLS_CERTIFICATE is set but COHORT_TLS_AUTHORITY is not; set it"},
      {{{"COHORT_TLS_CERTIFICATE", std::nullopt}}, "COHORT_TLS_KEY is set but COHORT_TLS_CERTIFICATE is not; set it"},
      {{{"COHORT_TLS_CERTIFICATE", std::nullopt}, {"COHORT_TLS_KEY", std::nullopt}},
       "COHORT_TLS_AUTHORITY is set but COHORT_TLS_CERTIFICATE is not; set it"},
      {{{"COHORT_TLS_KEY", ""}}, "COHORT_TLS_KEY is empty: expected the path of a file in PEM form"},
      {with(tls_files().options("expired")),
       "(COHORT_TLS_CERTIFICATE): no rank would accept it: certificate has expired"},
      {with(tls_files().options("stranger")), "(COHORT_TLS_CERTIFICATE): no rank would accept it: "},
      {{{"COHORT_TLS_KEY", tls_files().at("open.key")}},
       "(COHORT_TLS_KEY): everybody on this host may use this file: run chmod o= on it"},
  };
  for (const wrong& each : all) {
    CAPTURE(each.words);
    variables environment = with(files);
    environment.insert(environment.end(), each.environment.begin(), each.environment.end());
    for (const auto& r : meet({environment, environment})) says(r, each.words);
  }
}

namespace {

/// Speaks TLS and has no certificate, or one that nobody signed: it knocks, and is let in nowhere.
class uncertified {
 public:
  explicit uncertified(bool has_one) : context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
    if (!has_one) return;
    const auto own = harness::make_identity({.name = "nobody"});
    SSL_CTX_use_certificate(context_.get(), own.certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), own.key.get());
  }
  ~uncertified() {
    for (SSL* const each : open_) {
      ::close(SSL_get_fd(each));
      SSL_free(each);
    }
  }
  uncertified(const uncertified&) = delete;
  uncertified& operator=(const uncertified&) = delete;

  [[nodiscard]] bool is_answered(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return true;
    SSL* const ssl = SSL_new(context_.get());
    SSL_set_fd(ssl, fd);
    open_.push_back(ssl);
    // In TLS 1.3 a client believes that it is in until it reads. It says what a rank would say, and is not heard.
    if (SSL_connect(ssl) != 1) return false;
    const transport::hello_bytes hello = transport::encode(transport::hello{});
    (void)SSL_write(ssl, hello.data(), static_cast<int>(hello.size()));
    char answer = 0;
    return SSL_read(ssl, &answer, 1) > 0;
  }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::vector<SSL*> open_{};
};

}  // namespace

TEST_CASE("tls: who has no certificate, or one of his own making, is let in nowhere and disturbs nobody") {
  const meeting_point knocked(3);
  expect_all_well([&](int) {
    const auto rank_main = [&](world_type world) -> task<> {
      uncertified without(false);
      uncertified with_own(true);
      const auto ports = listening_ports();
      harness::expect(ports.size() == (world.rank() == 0 ? 2U : 1U), "one port, on rank 0 two");
      std::atomic<int> answered{0};
      std::atomic<bool> over{false};
      std::thread knocking([&] {
        for (const std::uint16_t port : ports) answered += without.is_answered(port) + with_own.is_answered(port);
        over = true;
      });
      while (!over) world.poll();  // the port for messages answers in the turns of this rank
      knocking.join();
      harness::expect(answered == 0, "no answer to who has no certificate of this job");
      knocked.arrive_and_wait();
      auto work = all_kinds_of_work(world);
      co_await work;
    };
    return cohort::run(rank_main);
  });
}

#else

TEST_CASE("tls") { std::puts("SKIPPED: no OpenSSL here (Debian 12: apt-get install libssl-dev)"); }

#endif
