// SPDX-License-Identifier: BSL-1.0
// Collectives of ranks that read each other's memory: where the kernel does not let one, or the user does not want it, nobody does;
// nobody takes what a rank has put there since it gave up; a rank that is no more is told of.
#include "../support/forbid_copying.hpp"
#include "../support/processes.hpp"
#include "../support/steps.hpp"
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

using ints = std::vector<int>;
using world_type = communicator<cpu>;

/// Of an int; so long a one is either read or not for four calls, and the first four are not.
constexpr std::size_t block = std::size_t{1} << 18;
constexpr int first_read = 4;

collective::passage agreed(const world_type& world) {
  return world.calls().state()->passages.of(operation_kind::all_to_all, block * sizeof(int)).agreed();
}

int first_of(int from, int to, int call) { return ((from * 8 + to) * 100 + call) * 1000; }

void fill(std::span<int> in, int rank, int call) {
  for (std::size_t to = 0; to * block < in.size(); ++to) {
    harness::put_steps(&in[to * block], block, first_of(rank, static_cast<int>(to), call), 1);
  }
}
bool is_right(std::span<const int> out, int rank, int call) {
  for (std::size_t from = 0; from * block < out.size(); ++from) {
    if (!harness::are_steps(&out[from * block], block, first_of(static_cast<int>(from), rank, call), 1)) return false;
  }
  return true;
}

task<> all_to_alls(const world_type& world, int calls) {
  const auto p = static_cast<std::size_t>(world.size());
  ints in(p * block);
  ints out(p * block);
  for (int call = 0; call < calls; ++call) {
    fill(in, world.rank(), call);
    std::fill(out.begin(), out.end(), -1);
    co_await world.all_to_all(in, out);
    harness::expect(is_right(out, world.rank(), call), "what every rank has given");
  }
}

/// As many as it takes until the next is carried out by reading, without a word between the ranks.
task<> until_read(const world_type& world) {
  co_await all_to_alls(world, first_read + 1);
  harness::expect(agreed(world) == collective::passage::single_copy, "a trial of it");
}

/// One rank cannot read, or does not want to: the calls before, that one and those behind it.
task<int> one_does_not_read(world_type world) {
  co_await all_to_alls(world, 40);
  harness::expect(world.calls().state()->window->unreadable, "that nobody reads is known to all");
  harness::expect(agreed(world) == collective::passage::single_copy, "nothing was agreed on after that");
  co_return 0;
}

struct progress {
  std::atomic<int> entered{0};   // by rank 1
  std::atomic<int> given_up{0};  // by rank 0
};

/// Rank 1 has begun first, and sees of nothing that the others do. Rank 0 reads what is for it, waits for rank 1, gives up, and uses
/// its memory for something else, or lets go of it.
task<int> gives_up(world_type world, bool unmaps, const faults::shared<progress>& how_far) {
  const auto p = static_cast<std::size_t>(world.size());
  co_await until_read(world);
  const std::size_t bytes = p * block * sizeof(int);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  harness::expect(pages != MAP_FAILED, "memory");
  const std::span<int> in(static_cast<int*>(pages), p * block);
  ints out(p * block, -1);
  constexpr int call = 50;
  fill(in, world.rank(), call);
  bool failed = false;
  try {
    if (world.rank() == 1) {
      auto all = world.all_to_all(in, out);
      how_far->entered = 1;
      while (how_far->given_up == 0) ::sched_yield();
      co_await all;
    } else {
      while (how_far->entered == 0) ::sched_yield();
      co_await world.all_to_all(in, out, timeout{world.rank() == 0 ? 500ms : 60s});
    }
  } catch (const error& e) {
    failed = true;
    harness::expect(e.condition() == errc::timed_out, e.what());
  }
  if (world.rank() == 0) {
    if (unmaps) {
      ::munmap(pages, bytes);
    } else {
      std::fill(in.begin(), in.end(), 77);
    }
    how_far->given_up = 1;
  }
  harness::expect(failed, "an error on every rank");
  co_return 0;
}

/// Rank 1 ends while the others are about to read what it gives.
task<int> ends_meanwhile(world_type world, const faults::shared<progress>& how_far) {
  const auto p = static_cast<std::size_t>(world.size());
  co_await until_read(world);
  ints in(p * block);
  ints out(p * block, -1);
  fill(in, world.rank(), 50);
  if (world.rank() == 1) {
    auto all = world.all_to_all(in, out);
    how_far->entered = 1;
    std::raise(SIGKILL);
    co_await all;
  }
  while (how_far->entered < 1) ::sched_yield();
  auto all = world.all_to_all(in, out);
  (void)co_await faults::tell(all);
  co_return 0;
}

void expect_ok(const std::vector<harness::rank_result>& results) {
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}

}  // namespace

TEST_CASE("single copies: a rank that may not read the others is found out, and nothing is lost") {
  for (const int ranks : {2, 3, 4}) {
    for (int who = 0; who < ranks; ++who) {
      CAPTURE(ranks);
      CAPTURE(who);
      expect_ok(harness::run_ranks(ranks, [who](int) {
        return run([who](world_type world) -> task<int> {
          if (world.rank() == who) harness::expect(harness::forbid_reading_of_others(), "a filter of system calls");
          co_return co_await one_does_not_read(std::move(world));
        });
      }));
    }
  }
}

TEST_CASE("single copies: COHORT_SINGLE_COPY=0 says that there are none, on one rank or all") {
  for (const bool all : {true, false}) {
    CAPTURE(all);
    expect_ok(harness::run_ranks(3, [all](int rank) {
      if (all || rank == 2) ::setenv("COHORT_SINGLE_COPY", "0", 1);
      return run(one_does_not_read);
    }));
  }
}

TEST_CASE("single copies: what a rank gives up is taken by nobody, whatever is in its place by then") {
  for (const bool unmaps : {false, true}) {
    for (const int ranks : {3, 4}) {
      CAPTURE(unmaps);
      CAPTURE(ranks);
      const faults::shared<progress> how_far;
      expect_ok(harness::run_ranks(ranks, [&](int) {
        return run([&](world_type world) { return gives_up(std::move(world), unmaps, how_far); });
      }));
    }
  }
}

TEST_CASE("single copies: a rank that ends while it is read is told of") {
  for (const int ranks : {2, 3}) {
    CAPTURE(ranks);
    const faults::shared<progress> how_far;
    const auto results = harness::run_ranks(
        ranks, [&](int) { return run([&](world_type world) { return ends_meanwhile(std::move(world), how_far); }); });
    for (int r = 0; r < ranks; ++r) {
      if (r == 1) continue;
      const auto& result = results[static_cast<std::size_t>(r)];
      INFO(harness::describe(result));
      CHECK(result.ok());
      CHECK(result.out.find("rank 1") != std::string::npos);
      CHECK(result.out.find("error " + std::to_string(static_cast<int>(errc::peer_lost)) + " 1 ") == 0);
    }
  }
}
