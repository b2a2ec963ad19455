// SPDX-License-Identifier: BSL-1.0
// Ranks of one host that share memory: buffers that are registered give the same results as others, whoever registered
// his; what cannot be shared is carried by messages; the memory goes with its owners.
#include "../support/forbid_copying.hpp"
#include "../support/one_core.hpp"
#include "../support/processes.hpp"
#include "../support/steps.hpp"
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace cohort;

namespace {

std::vector<int> input_of(int rank, std::size_t count) {
  std::vector<int> v(count);
  harness::put_steps(v.data(), count, rank + 1, rank + 1);
  return v;
}

bool all_summed(std::span<const int> v, int ranks) {
  const int each = ranks * (ranks + 1) / 2;
  return harness::are_steps(v.data(), v.size(), each, each);
}

/// Who registers: everybody, nobody, the even ranks, rank 0 only its input.
task<> sums_with(communicator<cpu>& world, int who, std::size_t count) {
  std::vector<int> in = input_of(world.rank(), count);
  std::vector<int> out(count, -1);
  const bool registers = who == 0 || (who == 2 && world.rank() % 2 == 0) || (who == 3 && world.rank() == 0);
  registration a;
  registration b;
  if (registers) a = world.register_memory(in);
  if (registers && who != 3) b = world.register_memory(out);
  // A buffer that has no page for itself stays where it is.
  if (count * sizeof(int) > 8192) harness::expect(a.active() == registers, "registration where memory is shared");
  const std::string where = "who " + std::to_string(who) + ", " + std::to_string(count) + " elements";
  for (int again = 0; again < 3; ++again) {
    std::fill(out.begin(), out.end(), -1);
    co_await world.all_reduce(in, out, sum{});
    harness::expect(all_summed(out, world.size()), where.c_str());
    harness::expect(in == input_of(world.rank(), count), "the input as it was");
  }
  for (const int root_rank : {0, world.size() - 1}) {
    const bool here = world.rank() == root_rank;
    std::fill(out.begin(), out.end(), -1);
    co_await world.reduce(in, out, sum{}, root{root_rank});
    harness::expect(!here || all_summed(out, world.size()), "the root's sum");
    harness::expect(in == input_of(world.rank(), count), "the input as it was");
    if (world.size() > 2) continue;
    const auto in_order = [](int x, int y) { return 2 * x - y; };  // of two ranks the first comes first
    co_await world.reduce(in, out, in_order, root{root_rank});
    for (std::size_t i = 0; here && i < count; i += 97) harness::expect(out[i] == 0, "the root's two in order");
    std::vector<int> both = in;
    co_await world.reduce(both, both, in_order, root{root_rank});
    harness::expect(!here || (both.front() == 0 && both.back() == 0), "the same in place");
  }
  co_await world.all_reduce(in, sum{});
  harness::expect(all_summed(in, world.size()), "the sum in place");
}

task<int> all_ways(communicator<cpu> world) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{5000}, std::size_t{40000}, std::size_t{300001}}) {
    for (const int who : {0, 1, 2, 3}) co_await sums_with(world, who, count);
  }
  co_return 0;
}

/// x -> a x + b, one after the other: their order matters, and three words are no power of two.
struct affine {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  std::uint32_t index = 0;
  friend bool operator==(const affine&, const affine&) = default;
};
struct compose {
  affine operator()(const affine& f, const affine& g) const noexcept { return {g.a * f.a, g.a * f.b + g.b, f.index}; }
};
affine of_rank(int rank, std::size_t i) {
  const auto r = static_cast<std::uint32_t>(rank);
  const auto n = static_cast<std::uint32_t>(i);
  return {2 * r + 3 * n + 1, 7 * r + n, n};
}

/// Longer than a step in the window, with and without room of its own for the result.
task<int> long_scans(communicator<cpu> world) {
  for (const std::size_t count : {21840U, 21847U, 65537U, 200003U}) {
    std::vector<affine> in(count);
    std::vector<affine> inclusive(count);
    std::vector<affine> exclusive(count);
    for (std::size_t i = 0; i < count; ++i) {
      in[i] = of_rank(world.rank(), i);
      exclusive[i] = affine{1, 0, static_cast<std::uint32_t>(i)};
      for (int r = 0; r < world.rank(); ++r) exclusive[i] = compose{}(exclusive[i], of_rank(r, i));
      inclusive[i] = world.rank() == 0 ? in[i] : compose{}(exclusive[i], in[i]);
    }
    const std::vector<affine> before = in;
    std::vector<affine> out(count);
    for (int again = 0; again < 2; ++again) {
      co_await world.scan(in, out, compose{});
      harness::expect(out == inclusive, "what ranks 0 to r have, in their order");
      harness::expect(in == before, "the input as it was");
      co_await world.exclusive_scan(in, out, compose{}, initial{affine{}});
      for (affine& each : out) each.index = static_cast<std::uint32_t>(&each - out.data());
      harness::expect(out == exclusive, "what the ranks before this one have");
      harness::expect(in == before, "the input as it was");
    }
    co_await world.scan(in, compose{});
    harness::expect(in == inclusive, "the same in place");
    std::vector<float> means(count, static_cast<float>(world.rank()));
    co_await world.scan(means, average{});
    harness::expect(means == std::vector<float>(count, static_cast<float>(world.rank()) / 2),
                    "means of the ranks so far");
  }
  co_return 0;
}

task<int> other_functors(communicator<cpu> world) {
  const int p = world.size();
  auto shared = world.make_shared_vector<float>(100000);
  for (float& x : shared) x = static_cast<float>(world.rank());
  co_await world.all_reduce(shared, average{});
  for (const float x : shared) harness::expect(x == static_cast<float>(p - 1) / 2, "the average");
  // Rank order, of a functor that needs it: the first operand is what the ranks before have made.
  auto words = world.make_shared_vector<std::uint64_t>(50000);
  for (std::uint64_t& w : words) w = static_cast<std::uint64_t>(world.rank() + 1);
  const auto append = [](std::uint64_t a, std::uint64_t b) { return a * 10 + b; };
  co_await world.all_reduce(words, append);
  std::uint64_t expected = 0;
  for (int r = 0; r < p; ++r) expected = expected * 10 + static_cast<std::uint64_t>(r + 1);
  for (const std::uint64_t w : words) harness::expect(w == expected, "the ranks in order");
  // Part of a registered buffer is registered too.
  for (float& x : shared) x = 1.0F;
  co_await world.all_reduce(std::span(shared.data() + 1001, std::size_t{70000}), sum{});
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const bool inside = i >= 1001 && i < 71001;
    harness::expect(shared[i] == (inside ? static_cast<float>(p) : 1.0F), "a part of the buffer");
  }
  co_return 0;
}

task<int> on_any_communicator(communicator<cpu> world) {
  auto pair = co_await world.subgroup(ranks{0, 1});
  auto copy = co_await world.duplicate();
  std::vector<int> v(100000, 1);
  registration r;
  if (pair.is_member()) {
    r = pair.register_memory(v);
  } else {
    r = world.register_memory(v);
  }
  co_await world.all_reduce(v, sum{});
  co_await copy.all_reduce(v, max{});
  if (pair.is_member()) co_await pair.all_reduce(v, sum{});
  const int expected = pair.is_member() ? 2 * world.size() : world.size();
  for (const int x : v) harness::expect(x == expected, "the same buffer on every communicator");
  co_return 0;
}

task<int> neighbours_on_a_page(communicator<cpu> world) {
  // The buffer begins and ends within pages that hold something else.
  std::vector<int> whole(30000);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = static_cast<int>(i);
  const std::span<int> middle(whole.data() + 777, 20000);
  const int* const before = middle.data();
  {
    const registration r = world.register_memory(middle);
    harness::expect(middle.data() == before, "the same address");
    for (std::size_t i = 0; i < whole.size(); ++i)
      harness::expect(whole[i] == static_cast<int>(i), "the same contents");
    std::fill(middle.begin(), middle.end(), world.rank() + 1);
    co_await world.all_reduce(middle, sum{});
  }
  const int total = world.size() * (world.size() + 1) / 2;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool inside = i >= 777 && i < 20777;
    harness::expect(whole[i] == (inside ? total : static_cast<int>(i)), "nothing beside the buffer to be changed");
  }
  // It is registered no more: the next operation copies, and is as right.
  std::fill(middle.begin(), middle.end(), 1);
  co_await world.all_reduce(middle, sum{});
  for (const int x : middle) harness::expect(x == world.size(), "a sum afterwards");
  co_return 0;
}

/// One rank may not read the other's memory, the other may.
task<int> without_reading(communicator<cpu> world) {
  if (world.rank() == 1) harness::expect(harness::forbid_reading_of_others(), "a filter of system calls");
  const int other = 1 - world.rank();
  for (int again = 0; again < 4; ++again) {
    const std::vector<int> mine = input_of(world.rank() + again, 500000);
    std::vector<int> theirs(mine.size());
    co_await world.exchange(mine, to{other}, theirs, from{other}, tag{1});
    harness::expect(theirs == input_of(other + again, 500000), "a long message");
  }
  co_return 0;
}

int first_of_block(int from, int to, int round) { return from * 100003 + to * 1009 + round * 17; }

void put_block_of(int from, int to, int round, std::span<int> block) {
  harness::put_steps(block.data(), block.size(), first_of_block(from, to, round), 1);
}
bool is_block_of(int from, int to, int round, std::span<const int> found) {
  return harness::are_steps(found.data(), found.size(), first_of_block(from, to, round), 1);
}

/// Blocks that go through the window, and by messages, and the other way round: of each length the last that does and the
/// first that does not, and a long one.
task<int> long_blocks(communicator<cpu> world) {
  const int p = world.size();
  const int me = world.rank();
  const auto ranks = static_cast<std::size_t>(p);
  for (const std::size_t total : {std::size_t{1} << 20, std::size_t{2} << 20, std::size_t{9} << 20}) {
    for (const bool past : {false, true}) {
      const std::size_t count = total / sizeof(int) / ranks - (past ? 0 : 1);
      const int root_rank = static_cast<int>(count % ranks);
      const int round = static_cast<int>(total >> 20) + (past ? 1 : 0);
      std::vector<int> given(count * ranks);
      for (int k = 0; k < p; ++k) {
        put_block_of(me, k, round, std::span(given).subspan(static_cast<std::size_t>(k) * count, count));
      }
      std::vector<int> one(count, -1);
      std::vector<int> all(count * ranks, -1);
      const auto from = [&](int k) { return std::span(all).subspan(static_cast<std::size_t>(k) * count, count); };
      co_await world.scatter(given, one, root{root_rank});
      harness::expect(is_block_of(root_rank, me, round, one), "a scatter");
      co_await world.all_to_all(given, all);
      for (int k = 0; k < p; ++k) {
        harness::expect(is_block_of(k, me, round, from(k)), "an all_to_all");
      }
      co_await world.all_gather(one, all);
      for (int k = 0; k < p; ++k) {
        harness::expect(is_block_of(root_rank, k, round, from(k)), "an all_gather");
      }
      // In place: the root's block stays where it is.
      const std::span<int> own = std::span(given).subspan(static_cast<std::size_t>(me) * count, count);
      co_await world.scatter(given, me == root_rank ? own : std::span(one), root{root_rank});
      const std::span<int> got = me == root_rank ? own : std::span(one);
      harness::expect(is_block_of(root_rank, me, round, got), "a scatter in place");
    }
  }
  co_return 0;
}

task<int> long_blocks_without_reading(communicator<cpu> world) {
  if (world.rank() == 1) harness::expect(harness::forbid_reading_of_others(), "a filter of system calls");
  co_return co_await long_blocks(std::move(world));
}

task<int> without_descriptors(communicator<cpu> world) {
  // Messages have their memory already; the window finds no descriptor on one rank.
  for (int r = 0; r < world.size(); ++r) {
    if (r == world.rank()) continue;
    int value = 0;
    co_await world.exchange(std::span(&r, 1), to{r}, std::span(&value, 1), from{r}, tag{1});
  }
  rlimit limit{};
  harness::expect(::getrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit");
  if (world.rank() == 1) {
    const rlimit none{3, limit.rlim_max};
    harness::expect(::setrlimit(RLIMIT_NOFILE, &none) == 0, "a limit");
  }
  for (const std::size_t count : {std::size_t{2}, std::size_t{100000}}) {
    std::vector<int> v = input_of(world.rank(), count);
    co_await world.all_reduce(v, sum{});
    harness::expect(all_summed(v, world.size()), "the sum, by messages");
    std::vector<int> all(count * static_cast<std::size_t>(world.size()));
    co_await world.all_gather(v, all);
    harness::expect(all.front() == v.front() && all.back() == v.back(), "the gathered blocks");
    co_await world.broadcast(v, root{1});
    co_await world.barrier();
  }
  if (world.rank() == 1) harness::expect(::setrlimit(RLIMIT_NOFILE, &limit) == 0, "a limit");
  co_return 0;
}

template <class Body, class Before>
void on_ranks(int n, Body body, Before before) {
  CAPTURE(n);
  const auto results = harness::run_ranks(n, [body, before](int rank) {
    before(rank);
    return run(body);
  });
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}
template <class Body>
void on_ranks(int n, Body body) {
  on_ranks(n, body, [](int) {});
}

}  // namespace

TEST_CASE("sums are the same whoever has registered his buffers") {
  for (const int n : {2, 3, 4}) on_ranks(n, all_ways);
}

TEST_CASE("scans of more than one step") {
  for (const int ranks : {2, 3, 5}) on_ranks(ranks, long_scans);
}
TEST_CASE("any functor, averages, and parts of registered buffers") {
  for (const int n : {2, 5}) on_ranks(n, other_functors);
}

TEST_CASE("what is registered on one communicator is used on all") { on_ranks(3, on_any_communicator); }

TEST_CASE("registering a buffer moves nothing and touches nothing beside it") { on_ranks(3, neighbours_on_a_page); }

TEST_CASE("where one rank cannot make its part of the window, messages do the work") {
  on_ranks(3, without_descriptors);
}

TEST_CASE("long messages arrive where a rank may not read the memory of others") { on_ranks(2, without_reading); }

TEST_CASE("long blocks, past the window and in it, where ranks may read the memory of others and where one may not") {
  for (const int n : {2, 3, 4}) on_ranks(n, long_blocks);
  for (const int n : {2, 4}) on_ranks(n, long_blocks_without_reading);
}

TEST_CASE("long blocks between two ranks on one core, and between two of which one has another core too") {
  on_ranks(2, long_blocks, [](int) { harness::on_first_core_only(); });
  on_ranks(2, long_blocks, [](int rank) {
    if (rank == 0) harness::on_first_core_only();
  });
}

TEST_CASE("a buffer is registered once, and again when that has ended") {
  on_ranks(2, [](communicator<cpu> world) -> task<int> {
    std::vector<int> v(100000, 1);
    {
      const registration whole = world.register_memory(v);
      try {
        const registration again = world.register_memory(std::span(v).subspan(5000, 50000));
        co_return 1;
      } catch (const error& e) {
        harness::expect(e.condition() == errc::invalid_argument, e.what());
        harness::expect(std::string(e.what()).find("registered already") != std::string::npos, e.what());
      }
    }
    const registration again = world.register_memory(v);
    co_await world.all_reduce(v, sum{});
    for (const int x : v) harness::expect(x == world.size(), "a sum");
    co_return 0;
  });
}

TEST_CASE("an empty buffer cannot be registered") {
  const auto results = harness::run_ranks(2, [](int) {
    return run([](communicator<cpu> world) -> task<int> {
      std::vector<int> nothing;
      try {
        const auto r = world.register_memory(nothing);
      } catch (const error& e) {
        const bool right = e.condition() == errc::invalid_argument &&
                           std::string(e.what()).find("the buffer has no elements") != std::string::npos;
        co_return right ? 0 : 1;
      }
      co_return 1;
    });
  });
  for (const auto& r : results) CHECK(r.ok());
}
