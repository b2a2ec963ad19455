// SPDX-License-Identifier: BSL-1.0
// Meshes: where each rank stands, whom it meets along an axis, what is refused; and the barrier that names who is
// missing.
#include "../support/errors.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

using harness::contains;
using harness::text_after;

using world_type = communicator<inproc>;

}  // namespace

TEST_CASE("mesh: coordinates, axes and whom one meets along them") {
  const auto body = [](world_type world) -> task<> {
    auto m = co_await make_mesh(world, axis{"data", 2}, axis{"pipe", 3}, axis{"tensor", 2});
    const int r = world.rank();
    const std::vector<int> expected{r / 6, r / 2 % 3, r % 2};
    CHECK(m.coordinates() == expected);
    CHECK(m.coordinate("pipe") == r / 2 % 3);
    CHECK(m.size("pipe") == 3);
    CHECK(m.rank_at(expected) == r);
    CHECK(m.whole().size() == 12);
    CHECK(m.along("pipe").rank() == m.coordinate("pipe"));
    const std::vector<int> met = co_await m.along("pipe").all_gather(r);
    std::vector<int> should;
    for (int k = 0; k < 3; ++k) should.push_back(r / 6 * 6 + k * 2 + r % 2);
    CHECK(met == should);
    CHECK(m.along("data").name() == "world/mesh/data");
  };
  run_local(12, body);
}

TEST_CASE("mesh: all_reduce in two dimensions gives what one over all gives") {
  const auto body = [](world_type world) -> task<> {
    auto m = co_await make_mesh(world, axis{"host", 2}, axis{"local", 3});
    std::vector<long> v(6 * 5, world.rank() + 1);
    std::vector<long> once = v;
    co_await world.all_reduce(once, sum{});
    std::vector<long> part(v.size() / 3);
    co_await m.along("local").reduce_scatter(v, part, sum{});
    co_await m.along("host").all_reduce(part, sum{});
    co_await m.along("local").all_gather(part, v);
    CHECK(v == once);
  };
  run_local(6, body);
}

TEST_CASE("mesh: of some of the axes, in another order") {
  const auto body = [](world_type world) -> task<> {
    auto m = co_await make_mesh(world, axis{"a", 2}, axis{"b", 2}, axis{"c", 3});
    auto sub = co_await m.submesh("c", "a");
    CHECK(sub.axes().size() == 2);
    CHECK(sub.whole().size() == 6);
    CHECK(sub.coordinate("c") == m.coordinate("c"));
    CHECK(sub.coordinate("a") == m.coordinate("a"));
    CHECK(sub.whole().rank() == m.coordinate("c") * 2 + m.coordinate("a"));
    CHECK(co_await sub.whole().all_reduce(m.coordinate("b"), max{}) == m.coordinate("b"));
    CHECK(co_await sub.along("c").all_reduce(1, sum{}) == 3);
  };
  run_local(12, body);
}

TEST_CASE("mesh: what is refused says what is wrong, and the world goes on") {
  const auto body = [](world_type world) -> task<> {
    auto a = text_after(make_mesh(world, axis{"data", 2}, axis{"tensor", 2}));
    CHECK(contains(co_await a, "the axes data=2 x tensor=2 need 4 ranks, 'world' has 6"));
    auto b = text_after(make_mesh(world, axis{"x", 2}, axis{"x", 3}));
    CHECK(contains(co_await b, "two axes are named 'x'"));
    auto c = text_after(make_mesh(world, axis{"x", 0}));
    CHECK(contains(co_await c, "axis 'x' has size 0: expected at least 1"));
    auto d = text_after(make_mesh(world, std::vector<axis>{}));
    CHECK(contains(co_await d, "no axis is given"));
    auto e = text_after(make_mesh(world, axis{"x", 2000000000}, axis{"y", 2000000000}));
    CHECK(contains(co_await e, "need more than 6 ranks"));
    auto m = co_await make_mesh(world, axis{"data", 2}, axis{"tensor", 3});
    std::string said;
    try {
      static_cast<void>(m.along("tenser"));
    } catch (const error& wrong) {
      said = wrong.what();
    }
    CHECK(contains(said, "there is no axis 'tenser'; the axes are data=2 x tensor=3"));
    try {
      static_cast<void>(m.rank_at({1, 3}));
    } catch (const error& wrong) {
      said = wrong.what();
    }
    CHECK(contains(said, "coordinate 3 along 'tensor': expected 0..2"));
    auto twice = text_after(m.submesh("data", "data"));
    CHECK(contains(co_await twice, "the axis 'data' is named twice"));
    CHECK(co_await world.all_reduce(1, sum{}) == 6);
  };
  run_local(6, body);
}

TEST_CASE("monitored barrier: it holds, and names everybody who has not come") {
  const auto body = [](world_type world) -> task<> {
    for (int i = 0; i < 3; ++i) co_await world.monitored_barrier();
    auto group = co_await world.duplicate(named{"step"});
    if (world.rank() == 1 || world.rank() == 3) {
      co_await world.barrier();
      co_return;
    }
    auto attempt = text_after(group.monitored_barrier(timeout{50ms}));
    const std::string said = co_await attempt;
    CHECK(contains(said, "barrier #0 on 'step' failed"));
    CHECK(contains(said,
                   "not arrived: world rank 1 has not called anything yet; world rank 3 has not called anything yet"));
    co_await world.barrier();
  };
  run_local(5, body);
}
