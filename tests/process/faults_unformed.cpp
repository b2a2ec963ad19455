// SPDX-License-Identifier: BSL-1.0
// A rank that leaves the world without having called for a communicator that others have formed with it: they are told, by a
// heartbeat and not by their deadline.
#include "fault_support.hpp"

#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

}  // namespace

TEST_CASE("a rank leaves the world that others wait for in a communicator which it never formed") {
  for (const int leaver : {0, 1}) {
    for (const bool late : {false, true}) {
      CAPTURE(leaver);
      CAPTURE(late);
      const auto ranks = run_ranks(3, [&](int rank) {
        const auto rank_main = [&](world_type world) -> task<> {
          if (rank == leaver) co_return;
          if (late) std::this_thread::sleep_for(300ms);  // it has left before anything is called there
          if (rank != 2) co_return;
          std::optional<error> failure;
          try {
            // Who comes to it first forms it by itself.
            auto both = co_await world.subgroup(cohort::ranks{2, leaver}, timeout{25s});
            std::vector<float> v(1000, 1.0F);
            co_await both.all_reduce(v, sum{}, timeout{25s});
          } catch (const error& e) {
            failure.emplace(e);
          }
          if (failure) say(*failure);
        };
        return cohort::run(rank_main);
      });
      const auto& r = ranks[2];
      INFO(harness::describe(r));
      CHECK(r.exit_code == 0);
      const auto errors = errors_of(r);
      REQUIRE(errors.size() == 1);
      CHECK(errors[0].code == errc::peer_lost);
      CHECK(contains(errors[0].text, "rank " + std::to_string(leaver)));
    }
  }
}
