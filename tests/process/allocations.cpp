// SPDX-License-Identifier: BSL-1.0
// In a steady state no operation allocates: frames, plans, early messages and scratch space are used again.
#include "../support/allocations.hpp"
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace cohort;

template <class Backend>
task<> one_of_each(communicator<Backend>& world, std::vector<std::vector<float>>& data) {
  const int n = world.size();
  const int r = world.rank();
  for (std::vector<float>& v : data) {
    const std::size_t block = v.size() / static_cast<std::size_t>(n);
    const std::span<float> own = std::span(v).first(block);
    const std::span<float> all = std::span(v).first(block * static_cast<std::size_t>(n));
    std::vector<float>& other = &v == &data.front() ? data.back() : data.front();
    const std::span<float> out = std::span(other).first(std::min(block, other.size()));
    co_await world.all_reduce(v, max{});
    co_await world.broadcast(v, root{n - 1});
    co_await world.barrier();
    co_await world.all_gather(all.subspan(block * static_cast<std::size_t>(r), block), all);
    co_await world.scan(v, max{});
    if (out.size() == block) co_await world.reduce_scatter(all, out, max{});
    co_await world.reduce(v, max{}, root{0});
    co_await world.all_reduce(1.0, max{});
    if (n > 1) {
      co_await world.exchange(own, to{(r + 1) % n}, all.subspan(block, block), from{(r + n - 1) % n}, tag{3});
    }
  }
}

template <class Backend>
task<int> counts_after_warm_up(communicator<Backend> world) {
  std::vector<std::vector<float>> data{std::vector<float>(64, 1.0F), std::vector<float>(5000, 1.0F),
                                       std::vector<float>(300000, 1.0F)};
  constexpr int warm_up = harness::sanitized ? 6 : 60;
  constexpr int rounds = harness::sanitized ? 4 : 40;
  for (int i = 0; i < warm_up; ++i) co_await one_of_each(world, data);
  // This thread's: heartbeats, which another thread sends, are not operations.
  const std::size_t before = harness::allocations;
  for (int i = 0; i < rounds; ++i) co_await one_of_each(world, data);
  const std::size_t made = harness::allocations - before;
  constexpr std::size_t operations = rounds * 3 * 8;
  std::printf("%zu allocations in %zu operations\n", made, operations);
  co_await world.barrier();  // the end of a rank, which may share this thread, allocates
  // How far ahead the messages of a peer run differs from turn to turn, so a list may still grow: but not with the
  // number of operations.
  if (harness::sanitized) co_return 0;  // so short a run has no steady state: here its threads are what is looked at
  co_return made * 20 > operations ? 1 : 0;
}

/// Messages of which a part has come when they are asked for: what was kept of them until then is used again.
task<int> counts_of_late_receives(communicator<cpu> world) {
  constexpr int messages = harness::sanitized ? 20 : 300;
  std::vector<std::uint32_t> data(50000);
  std::size_t before = 0;
  for (int i = 0; i < 2 * messages; ++i) {
    if (i == messages) before = harness::allocations;
    const auto first = static_cast<std::uint32_t>(i);
    if (world.rank() == 0) {
      std::iota(data.begin(), data.end(), first);
      co_await world.send(data, to{1});
      co_await world.recv(std::span(data).first(1), from{1});
    } else {
      // As soon as its header is here, and mostly before the rest: the sender fills what the socket takes at a time.
      while (!world.try_probe(from{0}, any_tag)) {}
      co_await world.recv(data, from{0});
      for (std::size_t k = 0; k < data.size(); ++k) {
        if (data[k] != first + static_cast<std::uint32_t>(k)) co_return 2;
      }
      co_await world.send(std::span(data).first(1), to{0});
    }
  }
  const std::size_t made = harness::allocations - before;
  std::printf("%zu allocations in %d messages\n", made, messages);
  if (harness::sanitized) co_return 0;
  co_return made * 20 > messages ? 1 : 0;
}

TEST_CASE("a message that is asked for while it comes allocates nothing, and arrives whole") {
  const auto results = harness::run_ranks(2, [](int) { return run(counts_of_late_receives); });
  for (const auto& result : results) {
    INFO(harness::describe(result));
    CHECK(result.ok());
    MESSAGE(result.out);
  }
}

TEST_CASE("over TCP an operation does not allocate") {
#if COHORT_TEST_ADDRESS_SANITIZED
  MESSAGE("not counted: AddressSanitizer builds take every frame from the heap");
#else
  for (const int n : {1, 2, 4}) {
    CAPTURE(n);
    const auto results = harness::run_ranks(n, [](int) {
      const auto rank_main = [](communicator<cpu> world) { return counts_after_warm_up(std::move(world)); };
      return run(rank_main);
    });
    for (const auto& result : results) {
      INFO(harness::describe(result));
      CHECK(result.ok());
      MESSAGE(result.out);
    }
  }
#endif
}

TEST_CASE("in one process an operation does not allocate") {
#if COHORT_TEST_ADDRESS_SANITIZED
  MESSAGE("not counted: AddressSanitizer builds take every frame from the heap");
#else
  const auto rank_main = [](communicator<inproc> world) { return counts_after_warm_up(std::move(world)); };
  for (const int code : run_local(1, rank_main)) CHECK(code == 0);
  for (const int code : run_local(4, rank_main)) CHECK(code == 0);
#endif
}

}  // namespace
