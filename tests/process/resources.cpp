// SPDX-License-Identifier: BSL-1.0
// Worlds that come and go in one process: what they leave behind must not grow, whether they end well or badly.
#include "fault_support.hpp"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

long entries_of(const char* folder) {
  long count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

struct belongings {
  long descriptors = entries_of("/proc/self/fd");
  long threads = entries_of("/proc/self/task");
  friend bool operator==(const belongings&, const belongings&) = default;
};

/// Runs `life` in `worlds` worlds of two ranks, one after the other, and compares before and after.
template <class Life>
void check_worlds(int worlds, const Life& life) {
  const meeting_point between(2);
  harness::rank_options options;
  options.deadline = 60s;
  const auto ranks = run_ranks(
      2,
      [&](int) {
        std::optional<belongings> before;
        for (int i = 0; i < worlds; ++i) {
          {
            world_type world = connect<cpu>();
            auto one = life(world, i);
            sync_wait(one);
          }
          between.arrive_and_wait();
          // The first world may have made what the process keeps.
          if (!before) before.emplace();
        }
        const belongings after;
        if (after == *before) return 0;
        std::printf("descriptors %ld, then %ld; threads %ld, then %ld\n", before->descriptors, after.descriptors, before->threads, after.threads);
        return 1;
      },
      options);
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

}  // namespace

TEST_CASE("fifty worlds leave no descriptor and no thread behind") {
  check_worlds(50, [](world_type& world, int i) -> task<> {
    std::vector<int> v(2000, world.rank() + i);
    co_await world.all_reduce(v, sum{});
    harness::expect(v == std::vector<int>(2000, 1 + 2 * i), "the right sum");
  });
}

TEST_CASE("twenty worlds that end in errors leave no descriptor and no thread behind") {
  check_worlds(20, [](world_type& world, int i) -> task<> {
    bool failed = false;
    try {
      std::vector<float> v(100000);
      if (world.rank() == 0) {
        switch (i % 4) {
          case 0: co_await world.barrier(); break;                                // another operation
          case 1: { const auto dropped = world.all_reduce(v, sum{}); } break;     // dropped in flight
          case 2: co_await world.recv(v, from{1}, tag{1}, timeout{20ms}); break;  // what nobody sends
          case 3: co_return;                                                      // gone early
        }
      } else {
        co_await world.all_reduce(v, sum{});
      }
    } catch (const error&) {
      failed = true;
    }
    harness::expect(failed || (world.rank() == 0 && i % 4 == 1), "an error");
  });
}
