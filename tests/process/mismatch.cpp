// SPDX-License-Identifier: BSL-1.0
// Ranks that do not call the same thing, as processes: what tests/unit/mismatch.cpp shows in one process holds over
// TCP, where the ranks know of each other's calls by messages and heartbeats alone. One world for each disagreement.
#include "../support/errors.hpp"
#include "../support/every_call.hpp"
#include "fault_support.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::every_collective;
using harness::what_to_call;

namespace {

constexpr int process_count = 3;

using world_type = communicator<cpu>;

/// What one rank does in one world; gives the error that it ended with.
using part = std::function<task<std::optional<error>>(world_type&)>;

struct disagreement {
  std::string name;
  int odd;
  part even_part;
  part odd_part;
  std::vector<std::string> words;
};

part calls_of(std::vector<what_to_call> script) {
  return [script](world_type& world) { return harness::first_error(world, script); };
}

std::string problem_with(const std::optional<error>& e, const disagreement& d) {
  if (!e) return "no error";
  if (e->condition() != errc::mismatch) return std::string("not a mismatch: ") + e->what();
  for (const std::string& word : d.words) {
    if (!contains(e->what(), word)) return "no \"" + word + "\" in: " + e->what();
  }
  return {};
}

/// Each disagreement in a world of its own, all in the same processes.
void check(const std::vector<disagreement>& all) {
  const meeting_point between(process_count);
  harness::rank_options options;
  options.deadline = 100s;
  // A tenth of it is how often ranks tell what they have called: the bound for those who wait for each other.
  options.environment = {{"COHORT_PEER_TIMEOUT", "2"}};
  const auto results = harness::run_ranks(
      process_count,
      [&](int rank) {
        int bad = 0;
        for (const disagreement& d : all) {
          const auto began = now_ms();
          {
            world_type world = connect<cpu>();
            world.set_timeout(10s);
            auto mine = rank == d.odd ? d.odd_part(world) : d.even_part(world);
            const std::optional<error> e = sync_wait(mine);
            const std::string problem = problem_with(e, d);
            if (!problem.empty()) {
              std::printf("%s, odd rank %d: %s\n", d.name.c_str(), d.odd, problem.c_str());
              ++bad;
            }
          }
          if (now_ms() - began > 5000)
            std::printf("%s took %lld ms\n", d.name.c_str(), static_cast<long long>(now_ms() - began));
          between.arrive_and_wait();
        }
        return bad;
      },
      options);
  INFO(harness::describe(results));
  for (const auto& r : results) CHECK(r.ok());
}

}  // namespace

TEST_CASE("mismatch over tcp: every ordered pair of collectives") {
  std::vector<disagreement> all;
  for (const operation_kind a : every_collective) {
    for (const operation_kind b : every_collective) {
      if (a == b) continue;
      disagreement d;
      d.name = std::string(name(a)) + " and " + std::string(name(b));
      d.odd = static_cast<int>(all.size()) % process_count;
      d.even_part = calls_of({{a}});
      d.odd_part = calls_of({{b}});
      d.words = {std::string(name(a)) + "(", std::string(name(b)) + "("};
      all.push_back(std::move(d));
    }
  }
  check(all);
}

TEST_CASE("mismatch over tcp: one collective, called differently") {
  std::vector<disagreement> all;
  const auto add = [&all](const std::string& name, part even_part, part odd_part, std::vector<std::string> words) {
    for (int odd = 0; odd < process_count; ++odd) all.push_back({name, odd, even_part, odd_part, words});
  };
  for (const operation_kind kind : every_collective) {
    if (kind == operation_kind::barrier) continue;
    const std::string what(name(kind));
    add(what + " of 5 and 6", calls_of({{kind}}), calls_of({{kind, 6}}), {});
    if (harness::detail::has_root(kind))
      add(what + " with two roots", calls_of({{kind}}), calls_of({{kind, 5, 1}}), {"root 0", "root 1"});
  }
  add("broadcast of 5 and of nothing", calls_of({{operation_kind::broadcast}}),
      calls_of({{operation_kind::broadcast, 0}}), {});
  add("long all_reduce", calls_of({{operation_kind::all_reduce, 300000}}),
      calls_of({{operation_kind::all_reduce, 299999}}), {"300000", "299999"});
  add("two calls swapped", calls_of({{operation_kind::gather}, {operation_kind::scatter}}),
      calls_of({{operation_kind::scatter}, {operation_kind::gather}}), {"gather(", "scatter("});

  const auto reducing = [](auto element, auto op) {
    return part([element, op](world_type& world) -> task<std::optional<error>> {
      std::vector v(9, element);
      std::optional<error> failure;
      try {
        co_await world.all_reduce(v, op);
        co_await world.barrier();
      } catch (const error& e) {
        failure.emplace(e);
      }
      co_return failure;
    });
  };
  add("two types of one size", reducing(0.0F, sum{}), reducing(std::int32_t{0}, sum{}), {"float32", "int32"});
  add("two functors", reducing(0.0F, sum{}), reducing(0.0F, max{}), {"sum", "max"});

  const auto with_table = [](const char* spec) {
    return part([spec, script = std::vector<what_to_call>{{operation_kind::all_reduce}}](world_type& world) {
      world.algorithms().override_with(spec);
      return harness::first_error(world, script);
    });
  };
  add("two algorithms", with_table("all_reduce=ring"), with_table("all_reduce=recursive_doubling"),
      {"by ring", "by recursive_doubling"});
  check(all);
}

namespace {

/// Rank 0 needs nothing of rank 1, which calls with another type. Result: what rank 0 was told, if it was
task<std::optional<error>> told_while_giving(world_type& world, bool by_messages) {
  const float mine[] = {1, 2};
  float sums[2] = {};
  const double others[] = {1, 2};
  double other_sums[2] = {};
  std::optional<error> told;
  try {
    for (const auto until = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < until;) {
      if (world.rank() == 0 && by_messages) {
        co_await world.send(mine, to{1});
      } else if (world.rank() == 0) {
        co_await world.scan(mine, sums, sum{});
      } else if (by_messages) {
        co_await world.recv(other_sums, from{0});
      } else {
        co_await world.scan(others, other_sums, sum{});
      }
      std::this_thread::sleep_for(1ms);
    }
  } catch (const error& e) {
    told.emplace(e);
  }
  co_return told;
}

}  // namespace

TEST_CASE("mismatch: a rank that waits for nothing is told at one of its next calls") {
  for (const char* const memory : {"1", "0"}) {
    for (const bool by_messages : {false, true}) {
      CAPTURE(memory);
      CAPTURE(by_messages);
      const shared<std::atomic<bool>> both_know;
      harness::rank_options options;
      options.deadline = 60s;
      options.environment = {{"COHORT_SHM", memory}};
      const auto results = harness::run_ranks(
          2,
          [&](int) {
            world_type world = connect<cpu>();
            auto mine = told_while_giving(world, by_messages);
            const std::optional<error> e = sync_wait(mine);
            const bool right = e && e->condition() == errc::mismatch && contains(e->what(), "float32") &&
                               contains(e->what(), "float64");
            if (!right) std::printf("%s\n", e ? e->what() : "never told");
            // Who leaves tells by that as well.
            if (world.rank() == 0) *both_know = true;
            for (int i = 0; i < 25000 && !*both_know; ++i) std::this_thread::sleep_for(1ms);
            return right ? 0 : 1;
          },
          options);
      INFO(harness::describe(results));
      for (const auto& r : results) CHECK(r.ok());
    }
  }
}

// Those with counts may meet in memory, those without exchange messages first: nobody may wait for the other.
TEST_CASE("mismatch over tcp: counts at the receivers on one rank, and none on another") {
  std::vector<disagreement> all;
  const auto ones = [](world_type& w) { return std::vector<std::size_t>(static_cast<std::size_t>(w.size()), 1); };
  const auto many = [](world_type& w) { return std::vector<double>(static_cast<std::size_t>(w.size()), 0.25); };
  const auto gathers = [=](world_type& w) -> task<std::optional<error>> {
    std::vector<double> in{0.25};
    std::vector<double> out = many(w);
    auto ended = harness::error_after(w.gather_v(in, out, ones(w), root{0}));
    std::optional<error> e = co_await ended;
    if (e) co_return e;
    auto next = harness::error_after(w.barrier());
    co_return co_await next;
  };
  const auto gathers_any = [](world_type& w) -> task<std::optional<error>> {
    std::vector<double> in{0.25};
    auto ended = harness::error_after(w.gather_v(in, root{0}));
    std::optional<error> e = co_await ended;
    if (e) co_return e;
    auto next = harness::error_after(w.barrier());
    co_return co_await next;
  };
  const auto exchanges = [=](world_type& w) -> task<std::optional<error>> {
    std::vector<double> in = many(w);
    std::vector<double> out = many(w);
    auto ended = harness::error_after(w.all_to_all_v(in, ones(w), out, ones(w)));
    co_return co_await ended;
  };
  const auto exchanges_any = [=](world_type& w) -> task<std::optional<error>> {
    std::vector<double> in = many(w);
    auto ended = harness::error_after(w.all_to_all_v(in, ones(w)));
    co_return co_await ended;
  };
  for (int odd = 0; odd < process_count; ++odd) {
    // A rank that is not the root may have given its elements already, and be in the barrier.
    all.push_back({"gather_v", odd, gathers, gathers_any, {"gather_v(float64"}});
    all.push_back({"all_to_all_v", odd, exchanges, exchanges_any, {"no counts at the receivers", "either all ranks"}});
  }
  check(all);
}
