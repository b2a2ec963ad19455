// SPDX-License-Identifier: BSL-1.0
// Operations of ranks that find the others there are carried out where they are called, in memory or by messages over
// sockets; those that do not go on in a frame from where they are. Either way they do and say the same. Two ranks: more than
// there are cores for do not look for each other first.
#include "../support/pair_calls.hpp"
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>
#include <cohort/transport/shm/window.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;
using pair_calls::check;
using pair_calls::ints;
using pair_calls::mistake;
using pair_calls::tally;
using pair_calls::total;
using pair_calls::value;

namespace {

enum class manner { plain, in_a_frame, registered };

/// An all_reduce that is combined in slices, each rank in a manner of its own, and one of them slow to combine its own: the
/// other has raised its slice by then, and goes on in a frame.
task<> in_slices(communicator<cpu>& world, std::size_t n, manner how, int slow, tally& t) {
  const int r = world.rank();
  ints in(n);
  ints out(n, -1);
  for (std::size_t i = 0; i < n; ++i) in[i] = value(r, i);
  std::optional<registration> reached[2];
  if (how == manner::registered) {
    reached[0].emplace(world.register_memory(std::span(in)));
    reached[1].emplace(world.register_memory(std::span(out)));
  }
  bool pause = slow == r;
  const auto functor = [&pause](int a, int b) {
    if (pause) {
      pause = false;
      std::this_thread::sleep_for(200us);
    }
    return 2 * a + b;
  };
  const std::stop_source never;
  auto op = how == manner::in_a_frame ? world.all_reduce(in, out, functor, stop{never.get_token()})
                                      : world.all_reduce(in, out, functor);
  co_await t.count(op);
  check(out, "an all_reduce in slices", [](std::size_t i) { return 2 * value(0, i) + value(1, i); });
  auto again = world.all_reduce(in, sum{});
  co_await t.count(again);
  check(in, "one in place after it", total);
}

task<int> in_any_manner(communicator<cpu> world) {
  constexpr manner manners[] = {manner::plain, manner::in_a_frame, manner::registered};
  tally t;
  for (const std::size_t n : {2049U, 8191U, 8192U, 10000U, 16384U}) {
    for (const manner first : manners) {
      for (const manner second : manners) {
        for (int slow = -1; slow < 2; ++slow) {
          for (int round = 0; round < 3; ++round)
            co_await in_slices(world, n, world.rank() == 0 ? first : second, slow, t);
        }
      }
    }
  }
  harness::expect(t.with_frame > 0, "operations that had to wait");
  co_return 0;
}

task<int> in_any_order(communicator<cpu> world) {
  const tally t = co_await pair_calls::in_any_order(world, 1500);
  std::printf("%d without a frame, %d with one\n", t.without_frame, t.with_frame);
  co_return 0;
}

template <mistake What>
task<int> second_is_wrong(communicator<cpu> world) {
  const std::string text = co_await pair_calls::second_is_wrong<What>(world);
  std::printf("%s\n", text.c_str());
  co_return 0;
}

const harness::variables in_memory{};
const harness::variables over_sockets{{"COHORT_SHM", "0"}};

std::vector<harness::rank_result> ends_of(int ranks, task<int> (*rank_main)(communicator<cpu>),
                                          const harness::variables& environment) {
  harness::rank_options options;
  options.environment = environment;
  return harness::run_ranks(
      ranks, [rank_main](int) { return cohort::run(rank_main); }, options);
}

std::vector<harness::rank_result> expect_ok(int ranks, task<int> (*rank_main)(communicator<cpu>),
                                            const harness::variables& environment) {
  auto results = ends_of(ranks, rank_main, environment);
  for (const harness::rank_result& r : results) CHECK_MESSAGE(r.ok(), harness::describe(results));
  return results;
}

template <mistake What>
std::vector<std::string> told(const harness::variables& environment) {
  std::vector<std::string> texts;
  for (const harness::rank_result& r : expect_ok(2, second_is_wrong<What>, environment)) texts.push_back(r.out);
  return texts;
}

/// Whoever needs nothing of a rank may be ahead of it by window_head::ahead operations: here they wait in the window.
task<int> root_is_ahead(communicator<cpu> world) {
  const int ahead = static_cast<int>(transport::window_head::ahead(world.size()));
  int value = 0;
  co_await world.barrier();
  for (int round = 0; round < 50; ++round) {
    if (world.rank() == 1) {
      co_await world.recv(std::span(&value, 1), from{0});  // sent after all those that it has not entered yet
      harness::expect(value == round, "the message after the broadcasts");
    }
    for (int i = 0; i < ahead; ++i) {
      value = world.rank() == 0 ? 1000 * round + i : -1;
      co_await world.broadcast(std::span(&value, 1), root{0});
      harness::expect(value == 1000 * round + i, "a broadcast that waited");
    }
    if (world.rank() == 0) co_await world.send(std::span(&round, 1), to{1});
    co_await world.barrier();
  }
  co_return 0;
}

/// What a root has given is there for the others when it has left.
task<int> root_leaves(communicator<cpu> world) {
  const int ahead = static_cast<int>(transport::window_head::ahead(world.size()));
  co_await world.barrier();
  if (world.rank() == 1) std::this_thread::sleep_for(300ms);  // by then the other has gone, if nothing holds it back
  const std::stop_source never;
  for (int i = 0; i < ahead; ++i) {
    int value = world.rank() == 0 ? i : -1;
    const std::span<int> one(&value, 1);
    auto op = i % 2 == 0 || world.rank() == 0 ? world.broadcast(one, root{0})
                                              : world.broadcast(one, root{0}, stop{never.get_token()});  // in a frame
    co_await op;
    harness::expect(value == i, "a broadcast of a root that has left");
  }
  co_return 0;
}

/// Two roots who need nothing of each other disagree on who is it.
task<int> two_roots(communicator<cpu> world) {
  int value = 7;
  std::string text = "nothing";
  for (int i = 0; i < 20; ++i) co_await world.all_reduce(std::span(&value, 1), max{});
  try {
    co_await world.broadcast(std::span(&value, 1), root{world.rank()});
    for (int i = 0; i < 2 * static_cast<int>(transport::window_head::ahead(world.size())); ++i) {
      co_await world.broadcast(std::span(&value, 1), root{0});
    }
    co_await world.barrier();
  } catch (const error& e) {
    text = e.what();
  }
  std::printf("%s\n", text.c_str());
  co_return 0;
}

/// Half a part of the window has no room for one: a reduce_scatter of these goes by messages, and leaves no trace there.
struct long_element {
  int number;
  std::byte rest[600 << 10];
};

task<int> long_elements(communicator<cpu> world) {
  std::vector<long_element> in(2);
  std::vector<long_element> out(1);
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 0) {
      for (int k = 0; k < 2; ++k) in[static_cast<std::size_t>(k)].number = 10 * world.rank() + i + k;
      co_await world.reduce_scatter(
          in, out, [](const long_element& a, const long_element& b) { return a.number > b.number ? a : b; });
      harness::expect(out[0].number == 10 + i + world.rank(), "the larger of two");
    }
    int value = world.rank() == 0 ? i : -1;
    co_await world.broadcast(std::span(&value, 1), root{0});
    harness::expect(value == i, "a broadcast beside them");
  }
  co_return 0;
}

bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("operations of two ranks, of which one comes late, in any order") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const harness::rank_result& r : expect_ok(2, in_any_order, environment)) MESSAGE(r.out);
  }
}

TEST_CASE("an all_reduce in slices, whichever of two ranks has a frame, registered buffers, or takes its time") {
  expect_ok(2, in_any_manner, in_memory);
}

TEST_CASE("what the second of two ranks does wrong is told as ever") {
  for (const auto& environment : {in_memory, over_sockets}) {
    const auto functor = told<mistake::functor>(environment);
    CHECK_MESSAGE(says(functor[0], "a function of rank 1 threw: no such sum"), functor[0]);
    CHECK_MESSAGE(says(functor[1], "no such sum"), functor[1]);
    for (const std::string& text : told<mistake::count>(environment)) {
      CHECK_MESSAGE(says(text, "all_reduce(3 x int32, max)"), text);
      CHECK_MESSAGE(says(text, "all_reduce(2 x int32, max)"), text);
    }
    for (const std::string& text : told<mistake::kind>(environment)) {
      CHECK_MESSAGE(says(text, "called barrier()"), text);
      CHECK_MESSAGE(says(text, "called all_reduce(3 x int32, max)"), text);
    }
    for (const std::string& text : told<mistake::element>(environment)) {
      CHECK_MESSAGE(says(text, "rank 0 sent elements of int32 with tag 0, rank 1 receives float32"), text);
    }
    for (const std::string& text : told<mistake::room>(environment)) {
      CHECK_MESSAGE(says(text, "rank 0 sent 3 elements with tag 0, rank 1 has room for 2"), text);
    }
  }
}

TEST_CASE("a rank that needs nothing of another is ahead of it, as far as it may be, and no further") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const int ranks : {2, 4}) {
      expect_ok(ranks, root_is_ahead, environment);
    }
  }
}

TEST_CASE("a root that was ahead has left") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const int ranks : {2, 4}) {
      expect_ok(ranks, root_leaves, environment);
    }
  }
}

TEST_CASE("ranks that are ahead of each other find out that they called different things") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const harness::rank_result& r : ends_of(2, two_roots, environment)) {
      CHECK_MESSAGE(says(r.out, "rank 0 called broadcast(1 x int32, root 0)"), r.out);
      CHECK_MESSAGE(says(r.out, "rank 1 called broadcast(1 x int32, root 1)"), r.out);
    }
  }
}

TEST_CASE("operations on elements too long for the window stand beside those in it") {
  expect_ok(2, long_elements, in_memory);
}

TEST_CASE("a functor that throws once fails its call, whose vector it may have combined in part by then") {
  struct attempt {
    const char* what;
    std::size_t count;  // beside the words, as a whole, in slices
    bool in_place;
  };
  for (const attempt& each :
       {attempt{"all_reduce", 10, true}, attempt{"all_reduce", 10, false}, attempt{"all_reduce", 1000, true},
        attempt{"all_reduce", 8000, true}, attempt{"scan", 10, true}, attempt{"scan", 1000, true},
        attempt{"reduce_scatter", 500, false}}) {
    CAPTURE(each.what);
    CAPTURE(each.count);
    const auto ranks = harness::run_ranks(2, [&each](int rank) {
      const auto rank_main = [&](communicator<cpu> world) -> task<> {
        const std::string what = each.what;
        int calls = 0;
        const auto functor = [&calls, rank](int a, int b) {
          if (rank == 1 && ++calls == 5) throw std::domain_error("once");
          return a + b;
        };
        ints in(each.count, rank + 1);
        ints out(each.count);
        ints block(each.count / 2);
        for (int i = 0; i < 4; ++i) {  // the first one opens the window
          auto op = world.all_reduce(1, sum{});
          co_await op;
        }
        std::string threw;
        bool failed = false;
        try {
          if (what == "scan") {
            auto op = world.scan(in, in, functor);
            co_await op;
          } else if (what == "reduce_scatter") {
            auto op = world.reduce_scatter(in, block, functor);
            co_await op;
          } else if (each.in_place) {
            auto op = world.all_reduce(in, functor);
            co_await op;
          } else {
            auto op = world.all_reduce(in, out, functor);
            co_await op;
          }
          // Rank 0 may have all that it needs.
          auto next = world.barrier();
          co_await next;
        } catch (const std::domain_error& e) {
          threw = e.what();
        } catch (const error& e) {
          failed = e.condition() == errc::user_function_failed;
        }
        harness::expect(rank == 1 ? threw == "once" : failed, "rank " + std::to_string(rank) + " is told");
        harness::expect(calls <= 5, "the functor is not called again");
      };
      return cohort::run(rank_main);
    });
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) CHECK(r.exit_code == 0);
  }
}
