// SPDX-License-Identifier: BSL-1.0
// Buffers and counts that a call cannot be carried out with: each is refused where it is called, says what is wrong, and
// leaves the communicator as it was.
#include "../support/errors.hpp"

#include <cohort/cohort.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

using harness::contains;
using harness::text_after;

using world_type = communicator<inproc>;

const std::span<int> nowhere(static_cast<int*>(nullptr), 2);

/// What a call is refused with, and that it has been refused where it was made.
template <class Operation>
task<std::string> refusal_of(Operation op) {
  CHECK(op.ready());
  auto text = text_after(std::move(op));
  co_return co_await text;
}

/// Makes one wrong call on each of two ranks, which must be refused with these words.
template <class Call>
void check_refused(const Call& call, const std::string& words) {
  CAPTURE(words);
  const auto body = [&](world_type world) -> task<> {
    world.set_timeout(5s);
    auto text = refusal_of(call(world));
    const std::string said = co_await text;
    INFO(said);
    CHECK(contains(said, words));
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}

}  // namespace

TEST_CASE("refused: a null pointer with elements, in the forms that take counts") {
  std::vector<int> one{1};
  std::vector<int> both{1, 2};
  const std::vector<int> counts{1, 1};
  const std::vector<int> two_each{2, 2};
  const std::string in = "in is a null pointer with 2 elements";
  const std::string out = "out is a null pointer with 2 elements";
  check_refused([&](world_type& w) { return w.all_gather_v(one, nowhere, counts); }, out);
  check_refused([&](world_type& w) { return w.all_gather_v(nowhere, both, two_each); }, in);
  check_refused([&](world_type& w) { return w.gather_v(one, nowhere, counts, root{w.rank()}); }, out);
  check_refused([&](world_type& w) { return w.scatter_v(nowhere, counts, one, root{w.rank()}); }, in);
  check_refused([&](world_type& w) { return w.scatter_v(nowhere, counts, root{w.rank()}); }, in);
  check_refused([&](world_type& w) { return w.scatter(nowhere, root{w.rank()}); }, in);
  check_refused([&](world_type& w) { return w.reduce_scatter_v(nowhere, one, counts, sum{}); }, in);
  check_refused([&](world_type& w) { return w.all_to_all_v(nowhere, counts, both, counts); }, in);
  check_refused([&](world_type& w) { return w.all_to_all_v(both, counts, nowhere, counts); }, out);
  check_refused([&](world_type& w) { return w.all_to_all_v(nowhere, counts); }, in);
}

TEST_CASE("refused: what a rank sends itself is not what it expects") {
  std::vector<int> in{1, 2, 3, 4};
  std::vector<int> out(4);
  const std::string words = "this rank sends itself 3 elements and expects 1";
  const auto by_counts = [&](world_type& w) {
    const std::vector<int> sent = w.rank() == 0 ? std::vector<int>{3, 1} : std::vector<int>{1, 3};
    const std::vector<int> expected = w.rank() == 0 ? std::vector<int>{1, 3} : std::vector<int>{3, 1};
    return w.all_to_all_v(in, sent, out, expected);
  };
  check_refused(by_counts, words);
  std::vector<std::vector<int>> from{{1, 2, 3}, {1, 2, 3}};
  std::vector<std::vector<int>> to{{0}, {0}};
  check_refused([&](world_type& w) { return w.all_to_all(from, to); }, words);
}

TEST_CASE("refused: a timeout of nothing, while one too long for the clock means never") {
  static_assert(timeout{std::chrono::seconds::max()}.after == std::chrono::nanoseconds::max());
  static_assert(timeout{std::chrono::hours::min()}.after == std::chrono::nanoseconds::min());
  static_assert(timeout{std::chrono::duration<double>(1.5)}.after == 1500ms);
  static_assert(timeout{std::chrono::nanoseconds::max() - 1ns}.after >= std::chrono::hours(24 * 365 * 200));
  check_refused([](world_type& w) { return w.all_reduce(1, sum{}, timeout{-1s}); },
                "timeout of -1000000000 ns: expected more than zero");
  const auto body = [](world_type world) -> task<> {
    CHECK(co_await world.all_reduce(1, sum{}, timeout{std::chrono::seconds::max()}) == 2);
  };
  run_local(2, body);
}
