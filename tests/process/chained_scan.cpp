// SPDX-License-Identifier: BSL-1.0
// Scans of long vectors by more than two ranks that share memory, which go along a chain: what every rank gets, for elements of
// any size and whatever stands beside them; and what the others learn where one throws, or dies, in the midst of it.
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>
#include <cohort/collective/shared/chained_scan.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;
using namespace faults;

namespace {

/// x -> a x + b, one after the other, so that the order of the ranks can be told.
struct affine {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  friend bool operator==(const affine&, const affine&) = default;
};
affine composed(affine f, affine g) { return {g.a * f.a, g.a * f.b + g.b}; }
affine held_by(int rank, std::size_t i) {
  const auto r = static_cast<std::uint32_t>(rank);
  const auto n = static_cast<std::uint32_t>(i);
  return {2 * r + 3 * n + 1, 7 * r + n};
}
/// What ranks 0 .. last hold, one after the other.
affine up_to(int last, std::size_t i) {
  affine all = held_by(0, i);
  for (int r = 1; r <= last; ++r) all = composed(all, held_by(r, i));
  return all;
}

/// One of these, and what makes it long: of all ranks the same. As few of them as can be are on a stack.
template <std::size_t Bytes>
struct long_affine {
  affine value{};
  std::array<std::uint32_t, (Bytes - sizeof(affine)) / sizeof(std::uint32_t)> rest{};
};
template <class T>
void put(T& into, affine value, std::size_t i) {
  into.value = value;
  std::fill(into.rest.begin(), into.rest.end(), static_cast<std::uint32_t>(i));
}
template <class T>
bool holds(const T& found, affine value, std::size_t i) {
  const auto n = static_cast<std::uint32_t>(i);
  return found.value == value &&
         std::count(found.rest.begin(), found.rest.end(), n) == static_cast<std::ptrdiff_t>(found.rest.size());
}

template <class T>
task<> scans_of(communicator<cpu>& world, std::size_t count) {
  const int me = world.rank();
  const std::string what = std::to_string(count) + " elements of " + std::to_string(sizeof(T)) + " bytes";
  const auto compose = [](const T& f, const T& g) {
    T both = g;
    both.value = composed(f.value, g.value);
    return both;
  };
  std::vector<T> in(count);
  std::vector<T> out(count);
  const std::vector<T> identity(1);
  for (std::size_t i = 0; i < count; ++i) put(in[i], held_by(me, i), i);
  for (int again = 0; again < 3; ++again) {
    for (std::size_t i = 0; i < count; ++i) put(out[i], affine{}, i + 1);
    co_await world.scan(in, out, compose);
    for (std::size_t i = 0; i < count; ++i)
      harness::expect(holds(out[i], up_to(me, i), i), ("ranks 0 to r: " + what).c_str());
    co_await world.exclusive_scan(in, out, compose, initial{identity[0]});
    for (std::size_t i = 0; i < count; ++i) {
      const bool right = me == 0 ? holds(out[i], affine{}, 0) : holds(out[i], up_to(me - 1, i), i);
      harness::expect(right, ("the ranks before: " + what).c_str());
      harness::expect(holds(in[i], held_by(me, i), i), ("the input as it was: " + what).c_str());
    }
  }
  co_await world.scan(in, compose);
  for (std::size_t i = 0; i < count; ++i)
    harness::expect(holds(in[i], up_to(me, i), i), ("the same in place: " + what).c_str());
}

/// From shorter than a chained one to some steps, with whole pieces and steps and without.
task<int> every_length(communicator<cpu> world) {
  for (const std::size_t count : {1365U, 1366U, 4U * 672U, 4U * 672U + 1U, 21824U, 21840U, 21841U, 65537U}) {
    co_await scans_of<long_affine<12>>(world, count);
  }
  for (const std::size_t count : {2047U, 2048U, 3072U, 3073U, 32768U, 100003U}) {
    co_await scans_of<long_affine<8>>(world, count);
  }
  for (const std::size_t count : {1U, 2U, 3U, 40U})
    co_await scans_of<long_affine<9000>>(world, count);  // longer than a piece
  for (const std::size_t count : {1U, 2U, 5U}) co_await scans_of<long_affine<300'000>>(world, count);  // than a step
  for (const std::size_t count : {1U, 3U})
    co_await scans_of<long_affine<530'000>>(world, count);  // than a slot: by messages
  std::vector<float> means(50'000, static_cast<float>(world.rank()));
  co_await world.scan(means, average{});
  harness::expect(means == std::vector<float>(means.size(), static_cast<float>(world.rank()) / 2),
                  "means of the ranks so far");
  co_return 0;
}

/// Operations of many kinds and lengths, which use the same slots, of ranks that are late now and then.
task<int> among_others(communicator<cpu> world) {
  std::mt19937 same(7);  // on all ranks
  std::mt19937 own(static_cast<unsigned>(world.rank()) + 100);
  const int p = world.size();
  const int me = world.rank();
  for (int call = 0; call < 600; ++call) {
    const auto kind = same() % 6;
    const std::size_t count = std::size_t{1} << (same() % 18);
    const int start = static_cast<int>(same() % 1000);
    const int chosen = static_cast<int>(same() % static_cast<unsigned>(p));
    if (own() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 3000));
    std::vector<int> v(count, start + me);
    const std::string what =
        "call " + std::to_string(call) + " of kind " + std::to_string(kind) + ", " + std::to_string(count);
    int expected = start + me;
    const auto sum_of = [start](int ranks) { return ranks * start + ranks * (ranks - 1) / 2; };
    if (kind < 2) {
      co_await world.scan(v, sum{});
      expected = sum_of(me + 1);
    } else if (kind == 2) {
      std::vector<int> out(count);
      co_await world.exclusive_scan(v, out, sum{});
      v = out;
      expected = sum_of(me);
    } else if (kind == 3) {
      co_await world.broadcast(v, root{chosen});
      expected = start + chosen;
    } else if (kind == 4) {
      co_await world.all_reduce(v, sum{});
      expected = sum_of(p);
    } else {
      std::vector<int> all(count * static_cast<std::size_t>(p));
      co_await world.all_gather(v, all);
      v.assign(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
      expected = start + p - 1;
    }
    harness::expect(std::count(v.begin(), v.end(), expected) == static_cast<std::ptrdiff_t>(count), what.c_str());
  }
  co_return 0;
}

/// Each rank in turn is so late that the others sleep.
task<int> one_is_late(communicator<cpu> world) {
  for (int late = 0; late < world.size(); ++late) {
    std::vector<std::int64_t> v(30'000, world.rank() + 1);
    if (world.rank() == late) std::this_thread::sleep_for(30ms);
    co_await world.scan(v, sum{});
    const std::int64_t expected = (world.rank() + 1) * (world.rank() + 2) / 2;
    harness::expect(std::count(v.begin(), v.end(), expected) == 30'000, "the sum of a scan that was waited for");
  }
  co_return 0;
}

void on_ranks(int n, task<int> (*rank_main)(communicator<cpu>)) {
  CAPTURE(n);
  for (const auto& r : harness::run_ranks(n, [rank_main](int) { return run(rank_main); })) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}

/// Elements that are combined somewhere in the midst of the fourth piece.
constexpr int elements_before = 7000;

template <class Ends>
std::vector<harness::rank_result> ends_in_the_midst(int culprit, const Ends& ends) {
  const meeting_point all_here(4);
  return harness::run_ranks(4, [&](int rank) {
    const auto rank_main = [&](communicator<cpu> world) -> task<> {
      std::vector<int> v(200'000, rank);
      co_await world.scan(v, sum{});
      all_here.arrive_and_wait();
      int combined = 0;
      const auto careful = [&](int a, int b) -> int {
        if (rank == culprit && ++combined == elements_before) ends();
        return a + b;
      };
      // Ranks before the culprit need nothing of it: they may get what they are to have, and learn it at a later call.
      std::string foreign;
      for (bool fine = true; fine && foreign.empty();) {
        auto op = world.scan(v, careful);
        try {
          fine = co_await tell(op);
        } catch (const std::domain_error& e) {
          foreign = e.what();
        }
      }
      if (!foreign.empty()) {
        harness::expect(rank == culprit && foreign == "no such sum", "the functor's own exception");
        say("thrown");
      }
      auto later = world.barrier();
      co_await tell(later);
    };
    return cohort::run(rank_main);
  });
}

}  // namespace

TEST_CASE("a chained scan is cut into whole elements, as many as there is room for") {
  std::mt19937 any(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t element = i < 300 ? static_cast<std::size_t>(i) + 1 : 1 + any() % 700'000;
    const std::size_t capacity = std::max(element, std::size_t{any() % 2 == 0 ? 512U : 128U} << 10);
    const collective::chained_scan_parts parts(capacity, element);
    REQUIRE(parts.step % element == 0);
    REQUIRE(parts.piece % element == 0);
    REQUIRE(parts.step >= element);
    REQUIRE(parts.piece >= element);
    REQUIRE(parts.step <= capacity);
    REQUIRE(parts.piece <= parts.step);
    REQUIRE((parts.piece == element || parts.piece <= 8192));
  }
}

TEST_CASE("scans along a chain give each rank what those before it hold, in their order") {
  for (const int n : {3, 4, 5}) on_ranks(n, every_length);
}

TEST_CASE("scans along a chain stand beside other operations in the same memory") {
  for (const int n : {3, 4, 8}) on_ranks(n, among_others);
}

TEST_CASE("ranks that sleep in a scan along a chain are woken") { on_ranks(4, one_is_late); }

TEST_CASE("a functor throws in the midst of a scan along a chain: every rank is told on which one and what") {
  for (const int thrower : {1, 2, 3}) {
    CAPTURE(thrower);
    const auto ranks = ends_in_the_midst(thrower, [] { throw std::domain_error("no such sum"); });
    check_survivors(ranks, {thrower}, {errc::user_function_failed, {thrower}, "scan", {"threw: no such sum"}});
    const auto& r = ranks[static_cast<std::size_t>(thrower)];
    INFO(harness::describe(r));
    CHECK(r.exit_code == 0);
    CHECK(time_of(r, "thrown") >= 0);
  }
}

TEST_CASE("a rank dies in the midst of a scan along a chain: every other one is told which") {
  for (const int victim : {1, 2, 3}) {
    CAPTURE(victim);
    const auto ranks = ends_in_the_midst(victim, [] { std::raise(SIGKILL); });
    CHECK(ranks[static_cast<std::size_t>(victim)].signal == SIGKILL);
    check_survivors(ranks, {victim}, {errc::peer_lost, {victim}, "scan", {"died"}});
  }
}
