// SPDX-License-Identifier: BSL-1.0
// Point-to-point messages between processes over TCP: what tests/support/point_to_point.hpp promises of any backend,
// and messages of more than 2^31 bytes.
#include "../support/point_to_point.hpp"
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>

using namespace cohort;

namespace {

task<int> all_promises(communicator<cpu> world) {
  const auto problems = co_await support::point_to_point(world);
  for (const std::string& problem : problems) std::printf("%s\n", problem.c_str());
  co_return problems.empty() ? 0 : 1;
}

/// A byte that depends on its place, cheap to make and to check.
unsigned char byte_at(std::size_t i) { return static_cast<unsigned char>(i * 2654435761U >> 24); }

task<int> more_than_two_gigabytes(communicator<cpu> world) {
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

void expect_all_end_well(int n, task<int> (*rank_main)(communicator<cpu>)) {
  support::rank_options options;
  options.deadline = std::chrono::seconds{100};  // gigabytes, on a machine that has other things to do
  const auto results = support::run_ranks(
      n, [rank_main](int) { return run(rank_main); }, options);
  INFO(support::describe(results));
  for (const auto& result : results) CHECK(result.ok());
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
