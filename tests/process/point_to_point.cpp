// SPDX-License-Identifier: BSL-1.0
// Point-to-point messages between processes over TCP: what tests/support/point_to_point.hpp promises of any backend,
// and messages of more than 2^31 bytes.
#include "../support/point_to_point.hpp"
#include "../support/all_end_well.hpp"
#include "../support/congestion.hpp"
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

using namespace cohort;

namespace {

task<int> all_promises(communicator<cpu> world) {
  const auto problems = co_await harness::point_to_point(world);
  for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
  co_return problems.empty() ? 0 : 1;
}

/// A byte that depends on its place, cheap to make and to check.
unsigned char byte_at(std::size_t i) { return static_cast<unsigned char>(i * 2654435761U >> 24); }

[[maybe_unused]] task<int> more_than_two_gigabytes(communicator<cpu> world) {
  constexpr std::size_t bytes = (std::size_t{1} << 31) + 4097;
  std::vector<unsigned char> data;
  if (world.rank() == 0) {
    data.resize(bytes);
    for (std::size_t i = 0; i < bytes; i += 4099) data[i] = byte_at(i);
    data[bytes - 1] = 77;
    co_await world.send(data, to{1});
  } else {
    const received got = co_await world.recv(growing(data), from{0});
    if (got.count != bytes || data.size() != bytes || data[bytes - 1] != 77) co_return 1;
    for (std::size_t i = 0; i + 1 < bytes; i += 4099) {
      if (data[i] != byte_at(i)) co_return 2;
    }
  }
  co_return 0;
}

struct congestion_count {
  int reno_at_least = 0;
  int reno_at_most = 0;
  int cubic_at_least = 0;
};

template <congestion_count Expected>
task<int> connections(communicator<cpu> world) {
  int data = world.rank();
  co_await world.broadcast(data, root{0});
  const int reno = harness::connections_with("reno");
  const int cubic = harness::connections_with("cubic");
  std::printf("reno %d, cubic %d\n", reno, cubic);
  const bool all = reno >= Expected.reno_at_least && reno <= Expected.reno_at_most && cubic >= Expected.cubic_at_least;
  co_return all ? 0 : 1;
}

void expect_all_end_well(int n, task<int> (*rank_main)(communicator<cpu>), harness::variables environment = {}) {
  harness::rank_options options;
  options.environment = std::move(environment);
  options.deadline = std::chrono::seconds{100};  // gigabytes, on a machine that has other things to do
  harness::expect_all_end_well(n, rank_main, options);
}

}  // namespace

TEST_CASE("point to point: processes over TCP") {
  for (const int n : {2, 3, 5}) expect_all_end_well(n, all_promises);
}

TEST_CASE("point to point: a message of more than 2^31 bytes") {
#if COHORT_TEST_SANITIZED
  MESSAGE("skipped: a sanitizer's shadow of 4 GiB does not fit");
#else
  expect_all_end_well(2, more_than_two_gigabytes);
#endif
}

TEST_CASE("point to point: the congestion control of a connection is Reno on one host, or what was asked for") {
  const std::string usual = harness::usual_congestion_control();
  // Connections of the launcher and of the liveness thread are as the host has them.
  constexpr congestion_count one{1, 1, 0};
  constexpr congestion_count some{1, 256, 0};
  constexpr congestion_count none{0, 0, 1};
  constexpr congestion_count any{0, 256, 1};
  const bool all_are = usual == "reno";
  expect_all_end_well(2, all_are ? connections<some> : connections<one>, {{"COHORT_SHM", "0"}});
  if (!harness::has_congestion_control("cubic")) {
    MESSAGE("skipped: what was asked for, as this host has no cubic beside " << usual);
    return;
  }
  expect_all_end_well(2, all_are ? connections<any> : connections<none>,
                      {{"COHORT_SHM", "0"}, {"COHORT_TCP_CONGESTION", "cubic"}});
}
