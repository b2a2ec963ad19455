// SPDX-License-Identifier: BSL-1.0
// Several ranks on each of two hosts, which are network namespaces with a cable between them where this user may make
// such: results are those of the oracle, and a rank that dies or a cable that breaks is told to everybody on both.
#include "../support/congestion.hpp"
#include "../support/oracle_exchange.hpp"
#include "../support/oracle_processes.hpp"
#include "../support/oracle_reduce.hpp"
#include "fault_support.hpp"
#include "launcher_networks.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

using namespace oracle;

namespace {

using cohort::from;
using cohort::task;
using cohort::to;
using launcher_test::two_networks;

/// Rank r is on host `host_of(r)`; rank 0, where the others meet, on host 0.
template <class HostOf>
auto moving_to(const two_networks& networks, HostOf host_of) {
  return [&networks, host_of](int rank) {
    networks.in(host_of(rank)).before_start();
    ::setenv("MASTER_ADDR", two_networks::address(0).c_str(), 1);
    ::setenv("COHORT_SECRET", "0123456789abcdef0123456789abcdef", 1);
    ::setenv("COHORT_SHM", "1", 1);
  };
}

/// Says so where there can be none.
bool are_made(const two_networks& networks) {
  if (!networks.made()) MESSAGE("skipped: no network namespaces can be made here (needs iproute2 and the right to)");
  return networks.made();
}

task<> everything(checker<remote>& c) {
  const std::vector<std::size_t> counts = counts_for(c.size(), prime);
  auto broadcasts = broadcast_matrix<rgb>(c, counts, all_roots(c.size()));
  co_await broadcasts;
  auto all_gathers = all_gather_matrix<rgb>(c, counts, prime);
  co_await all_gathers;
  auto everywhere = all_reduce_matrix<float, cohort::sum>(c, counts);
  co_await everywhere;
  auto in_order = all_reduce_matrix<matrix2, multiply>(c, {0, 1, 1009});
  co_await in_order;
  auto rooted = reduce_matrix<std::int32_t, cohort::sum>(c, counts, all_roots(c.size()));
  co_await rooted;
  auto scattered = reduce_scatter_matrix<float, cohort::sum>(c, counts, {});
  co_await scattered;
  auto barrier = c.world().barrier();
  co_await barrier;
}

constexpr std::initializer_list<operation_kind> all_kinds{operation_kind::broadcast, operation_kind::all_gather,
                                                          operation_kind::all_reduce, operation_kind::reduce,
                                                          operation_kind::reduce_scatter};

task<> call_until_failure(cohort::communicator<cohort::cpu>& world) {
  std::vector<float> v(10000, 1.0F);
  for (bool fine = true; fine;) {
    auto op = world.all_reduce(v, cohort::max{});
    fine = co_await faults::tell(op);
  }
  auto later = world.barrier();
  co_await faults::tell(later);
}

/// Ends well if that many connections of this rank have the congestion control. Who sends first connects: two that did at
/// once would have two connections for a moment, of which one is refused.
auto have_met(std::string congestion, int wanted) {
  return [=](cohort::communicator<cohort::cpu> world) -> task<int> {
    int word = 0;
    const std::span<int> data(&word, 1);
    if (world.rank() == 0) {
      co_await world.recv(data, from{1});
      co_await world.send(data, to{1});
    } else {
      co_await world.send(data, to{0});
      co_await world.recv(data, from{0});
    }
    const int found = harness::connections_with(congestion);
    std::printf("%d with %s\n", found, congestion.c_str());
    co_return found == wanted ? 0 : 1;
  };
}

}  // namespace

TEST_CASE("hosts: connections between two hosts have their congestion control, those on one host have Reno") {
  const two_networks networks;
  if (!are_made(networks)) return;
  if (harness::usual_congestion_control() == "reno") {
    MESSAGE("skipped: these hosts have Reno for all");
    return;
  }
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    const auto move_in = moving_to(networks, [apart](int r) { return apart ? r : 0; });
    const auto ranks = harness::run_ranks(2, [&](int rank) {
      move_in(rank);
      ::setenv("COHORT_SHM", "0", 1);
      return cohort::run(have_met("reno", apart ? 0 : 1));
    });
    INFO(harness::describe(ranks));
    for (const auto& each : ranks) CHECK(each.ok());
  }
}

TEST_CASE("hosts: the oracle over two networks, in a row, in turns and with one rank more on one of them") {
  const two_networks networks;
  if (!are_made(networks)) return;
  on_processes(4, all_kinds, everything, {}, moving_to(networks, [](int r) { return r / 2; }));
  on_processes(5, all_kinds, everything, {}, moving_to(networks, [](int r) { return r % 2; }));
}

TEST_CASE("hosts: a rank that is killed is named on both hosts") {
  const two_networks networks;
  if (!are_made(networks)) return;
  for (const int victim : {1, 3}) {
    CAPTURE(victim);
    const faults::meeting_point all_here(4);
    const auto move_in = moving_to(networks, [](int r) { return r / 2; });
    const auto ranks = harness::run_ranks(4, [&](int rank) {
      move_in(rank);
      const auto rank_main = [&](cohort::communicator<cohort::cpu> world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        if (rank == victim) std::raise(SIGKILL);
        co_await call_until_failure(world);
      };
      return cohort::run(rank_main);
    });
    faults::check_survivors(ranks, {victim}, {cohort::errc::peer_lost, {victim}, "all_reduce", {"died"}});
  }
}

TEST_CASE("hosts: when the cable breaks every rank gets an error within the peer timeout") {
  const two_networks networks;
  if (!are_made(networks)) return;
  const faults::meeting_point all_here(4);
  const auto move_in = moving_to(networks, [](int r) { return r / 2; });
  harness::rank_options options;
  options.environment = {{"COHORT_PEER_TIMEOUT", "1"}};
  const auto ranks = harness::run_ranks(
      4,
      [&](int rank) {
        move_in(rank);
        const auto rank_main = [&](cohort::communicator<cohort::cpu> world) -> task<> {
          // Connections are made on demand: here, and not when there is no way any more.
          std::vector<float> v(10000, 1.0F);
          co_await world.all_reduce(v, cohort::max{});
          all_here.arrive_and_wait();
          if (rank == 0) harness::expect(networks.cut(), "the cable to break");
          co_await call_until_failure(world);
        };
        return cohort::run(rank_main);
      },
      options);
  // Those of host 0 miss ranks 2 and 3, whom rank 0 has not heard; these miss rank 0.
  for (const auto& r : ranks) {
    const std::vector<int> culprits = r.rank < 2 ? std::vector<int>{2, 3} : std::vector<int>{0};
    faults::check_survivor(r,
                           {cohort::errc::peer_unresponsive, culprits, "all_reduce", {"has sent no heartbeat for 1."}});
  }
}
