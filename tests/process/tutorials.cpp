// SPDX-License-Identifier: BSL-1.0
// The programs of the tutorials on collective communication, with the values that they print, between real processes.
#include "../support/all_end_well.hpp"
#include "../support/processes.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <array>
#include <complex>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

using namespace cohort;

namespace {

/// Counts what is not as a tutorial prints it, and says where.
class tally {
 public:
  template <class A, class B>
  void equal(const A& found, const B& expected, const char* what) {
    if (found == expected) return;
    std::printf("%s is not what the tutorial prints\n", what);
    ++bad_;
  }
  [[nodiscard]] int bad() const noexcept { return bad_; }

 private:
  int bad_ = 0;
};

/// A group of five ranks of a world of eleven: its rank 0 sends to its rank 4.
task<int> group_of_even_ranks(communicator<cpu> world) {
  tally t;
  auto group = co_await world.subgroup(ranks{2, 4, 6, 8, 10});
  if (!group.is_member()) {
    t.equal(group.rank(), -1, "the rank of a process outside");
    co_return t.bad();
  }
  t.equal(group.rank(), world.rank() / 2 - 1, "a rank in the group");
  float value = static_cast<float>(world.rank());
  if (group.rank() == 0) co_await group.send(std::span(&value, 1), to{4});
  if (group.rank() == 4) {
    const received got = co_await group.recv(std::span(&value, 1), from{0});
    t.equal(value, 2.0F, "what rank 10 has");
    t.equal(got.source, 0, "its source");
    t.equal(group.world_rank_of(got.source), 2, "the source in the world");
  }
  co_return t.bad();
}

/// Two ranks exchange by a batch.
task<int> batch_of_two(communicator<cpu> world) {
  tally t;
  const int r = world.rank();
  const std::array mine{2.0F * static_cast<float>(r), 2.0F * static_cast<float>(r) + 1};
  std::array theirs{0.0F, 0.0F};
  auto b = world.batch(sending(mine, to{(r + 1) % 2}), receiving(theirs, from{(r + 1) % 2}));
  co_await b.all();
  t.equal(theirs, r == 0 ? std::array{2.0F, 3.0F} : std::array{0.0F, 1.0F}, "what the batch brought");
  co_return t.bad();
}

/// The group {0, 1} of four ranks; the others skip.
task<int> group_of_the_first_two(communicator<cpu> world) {
  tally t;
  if (world.rank() < 2) {
    auto group = co_await world.subgroup(ranks{0, 1});
    std::array<float, 1> one{1.0F};
    co_await group.all_reduce(one, sum{});
    t.equal(one[0], 2.0F, "the sum over the group");
  }
  co_return t.bad();
}

/// The functions with two ranks, as the documentation shows them.
task<int> functions_of_two(communicator<cpu> world) {
  tally t;
  const int r = world.rank();
  using pair = std::array<long, 2>;
  const pair mine{1 + 2 * r, 2 + 2 * r};  // [1, 2] and [3, 4]
  using complex_pair = std::array<std::complex<float>, 2>;
  const float base = static_cast<float>(1 + 2 * r);
  const complex_pair complex_mine{std::complex<float>{base, base}, std::complex<float>{base + 1, base + 1}};

  pair v = mine;
  co_await world.all_reduce(v, sum{});
  t.equal(v, pair{4, 6}, "all_reduce");
  complex_pair w = complex_mine;
  co_await world.all_reduce(w, sum{});
  t.equal(w, (complex_pair{std::complex<float>{4, 4}, std::complex<float>{6, 6}}), "all_reduce of complex numbers");

  std::array<pair, 2> list{};
  co_await world.all_gather(mine, list);
  t.equal(list, (std::array{pair{1, 2}, pair{3, 4}}), "all_gather into a list");
  std::array<long, 4> flat{};
  co_await world.all_gather(mine, flat);
  t.equal(flat, (std::array<long, 4>{1, 2, 3, 4}), "all_gather into one buffer");

  std::array<float, 2> fives{};
  const std::array<std::array<float, 2>, 2> to_scatter{std::array{1.0F, 1.0F}, std::array{5.0F, 5.0F}};
  co_await world.scatter(to_scatter, fives, root{0});
  t.equal(fives, r == 0 ? std::array{1.0F, 1.0F} : std::array{5.0F, 5.0F}, "scatter");

  std::array<std::array<float, 2>, 2> gathered{};
  co_await world.gather(fives, gathered, root{0});
  if (r == 0) t.equal(gathered, to_scatter, "gather");

  // The sum of what both have for a rank.
  std::array<long, 2> scattered{};
  const std::array<long, 4> terms{0, 1, 2, 3};
  co_await world.reduce_scatter(terms, scattered, sum{});
  t.equal(scattered, r == 0 ? std::array<long, 2>{0, 2} : std::array<long, 2>{4, 6}, "reduce_scatter");

  pair from_root = mine;
  co_await world.broadcast(from_root, root{0});
  t.equal(from_root, pair{1, 2}, "broadcast");
  pair reduced = mine;
  co_await world.reduce(reduced, sum{}, root{0});
  t.equal(reduced, r == 0 ? pair{4, 6} : mine, "reduce");
  co_return t.bad();
}

/// all_to_all with four ranks, even and uneven.
task<int> all_to_all_of_four(communicator<cpu> world) {
  tally t;
  const long r = world.rank();
  const std::array<long, 4> in{4 * r, 4 * r + 1, 4 * r + 2, 4 * r + 3};
  std::array<long, 4> out{};
  co_await world.all_to_all(in, out);
  t.equal(out, (std::array<long, 4>{r, 4 + r, 8 + r, 12 + r}), "all_to_all");

  // The uneven split of the documentation: the counts are negotiated.
  const std::vector<std::vector<long>> inputs{
      {0, 1, 2, 3, 4, 5}, {10, 11, 12, 13, 14, 15, 16, 17, 18}, {20, 21, 22, 23, 24}, {30, 31, 32, 33, 34, 35, 36}};
  const std::vector<std::vector<int>> splits{{2, 2, 1, 1}, {3, 2, 2, 2}, {2, 1, 1, 1}, {2, 2, 2, 1}};
  const std::vector<std::vector<long>> expected{
      {0, 1, 10, 11, 12, 20, 21, 30, 31}, {2, 3, 13, 14, 22, 32, 33}, {4, 15, 16, 23, 34, 35}, {5, 17, 18, 24, 36}};
  const auto me = static_cast<std::size_t>(r);
  const auto uneven = co_await world.all_to_all_v(inputs[me], splits[me]);
  t.equal(uneven.values(), expected[me], "all_to_all with uneven blocks");
  co_return t.bad();
}

/// Lists of objects, received as typed values.
task<int> lists_of_objects(communicator<cpu> world) {
  tally t;
  if (world.rank() == 0) {
    const std::vector<int> list{1, 2, 3};
    co_await world.send_objects(to{1}, std::string("hello"), 123, list);
  } else {
    auto message = world.recv_objects<std::string, int, std::vector<int>>(from{0});
    const auto [text, number, list] = co_await message;
    t.equal(text, std::string("hello"), "the first object");
    t.equal(number, 123, "the second object");
    t.equal(list, (std::vector<int>{1, 2, 3}), "the third object");
  }
  // broadcast_object_list(["foo", 12, {1: 2}])
  using triple = std::tuple<std::string, int, std::map<int, int>>;
  const triple known{"foo", 12, {{1, 2}}};
  // Named first: g++ 12 destroys the temporaries of a ?: inside a co_await expression twice.
  const triple mine = world.rank() == 0 ? known : triple{};
  const triple given = co_await world.broadcast_object(mine, root{0});
  t.equal(given, known, "broadcast_object");
  const std::string own = world.rank() == 0 ? "foo" : "a longer one";
  const auto all = co_await world.all_gather_object(own);
  t.equal(all, (std::vector<std::string>{"foo", "a longer one"}), "all_gather_object");
  co_return t.bad();
}

}  // namespace

TEST_CASE("tutorials: a group of even ranks of a world of eleven") {
  harness::expect_all_end_well(11, group_of_even_ranks);
}
TEST_CASE("tutorials: two ranks exchange by a batch") { harness::expect_all_end_well(2, batch_of_two); }
TEST_CASE("tutorials: the first two of four ranks, the others skip") {
  harness::expect_all_end_well(4, group_of_the_first_two);
}
TEST_CASE("tutorials: the functions with two ranks") { harness::expect_all_end_well(2, functions_of_two); }
TEST_CASE("tutorials: all_to_all with four ranks") { harness::expect_all_end_well(4, all_to_all_of_four); }
TEST_CASE("tutorials: lists of objects") { harness::expect_all_end_well(2, lists_of_objects); }
