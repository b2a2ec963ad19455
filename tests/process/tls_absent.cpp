// SPDX-License-Identifier: BSL-1.0
// A program that was built without the component `tls` and is asked for TLS: it refuses, and says nothing in plain text.
// Compiled without it on every machine.
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#if defined(COHORT_WITH_TLS) || defined(OPENSSL_VERSION_NUMBER)
#error "this test is about a program without OpenSSL"
#endif

namespace {

const std::string refusal =
    "TLS is asked for (COHORT_TLS_CERTIFICATE, COHORT_TLS_KEY, COHORT_TLS_AUTHORITY or tls_options), and this program "
    "was "
    "built without it: link the CMake target cohort::tls, or compile with -DCOHORT_WITH_TLS and link with -lssl "
    "-lcrypto; "
    "without these names it talks in plain text";

template <class Attempt>
std::string words_of(const Attempt& attempt) {
  try {
    attempt();
  } catch (const cohort::error& e) {
    CHECK(e.condition() == cohort::errc::tls_failed);
    return e.what();
  }
  return "nothing was refused";
}

}  // namespace

TEST_CASE("tls absent: every rank that is asked for TLS refuses at once, also a world of one") {
  for (const int n : {1, 2}) {
    harness::rank_options options;
    options.environment = {
        {"COHORT_TLS_CERTIFICATE", "a.pem"}, {"COHORT_TLS_KEY", "a.key"}, {"COHORT_TLS_AUTHORITY", "b.pem"}};
    const auto ranks = harness::run_ranks(
        n,
        [](int) {
          const auto rank_main = [](cohort::communicator<cohort::cpu> world) -> cohort::task<> {
            co_await world.barrier();
          };
          return cohort::run(rank_main);
        },
        options);
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) {
      CHECK(r.exit_code != 0);
      CHECK(r.err.find(refusal) != std::string::npos);
    }
  }
}

TEST_CASE("tls absent: so do the store and its server") {
  cohort::tcp_store_server_options serving;
  serving.tls.certificate = "a.pem";
  CHECK(words_of([&] { const cohort::tcp_store_server server(serving); }) == refusal);
  cohort::tcp_store_options asking;
  asking.where = {"127.0.0.1", 1};
  asking.tls.certificate = "a.pem";
  CHECK(words_of([&] { (void)cohort::tcp_store(asking, cohort::deadline_after(std::chrono::seconds(1))); }) == refusal);
}
