// SPDX-License-Identifier: BSL-1.0
// What the object functions promise, over any communicator: objects of other sizes on every rank, lists as one message,
// and that a wrong type is told to the one who expected it while the communicator goes on.
#pragma once

#include "point_to_point.hpp"

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace harness {

struct parameters {
  std::string name;
  std::map<std::string, double> values;
  std::optional<std::vector<int>> shape;
  friend bool operator==(const parameters&, const parameters&) = default;
};

inline parameters parameters_of(int rank) {
  parameters p;
  p.name = "rank " + std::to_string(rank);
  for (int i = 0; i < rank * 3; ++i) p.values["v" + std::to_string(i)] = i * 0.5;
  // Some longer than what is sent at once.
  if (rank % 2 == 1) p.shape.emplace(static_cast<std::size_t>(rank) * 100000, rank);
  return p;
}

template <class World>
cohort::task<std::vector<std::string>> objects(const World& world) {
  using namespace cohort;
  findings found;
  const int me = world.rank();
  const int n = world.size();
  const int last = n - 1;

  const parameters from_root = co_await world.broadcast_object(parameters_of(me), root{last});
  found.equal(from_root, parameters_of(last), "broadcast_object");

  const std::vector<parameters> all = co_await world.all_gather_object(parameters_of(me));
  found.equal(all.size(), static_cast<std::size_t>(n), "all_gather_object: another number");
  for (int r = 0; r < n; ++r) found.equal(all[static_cast<std::size_t>(r)], parameters_of(r), "all_gather_object");

  const std::vector<parameters> gathered = co_await world.gather_object(parameters_of(me), root{0});
  found.equal(gathered.size(), static_cast<std::size_t>(me == 0 ? n : 0), "gather_object: another number");
  if (me == 0) found.equal(gathered, all, "gather_object");

  std::vector<parameters> to_give;
  if (me == last) {
    for (int r = 0; r < n; ++r) to_give.push_back(parameters_of(n - r));
  }
  const parameters mine = co_await world.scatter_object(to_give, root{last});
  found.equal(mine, parameters_of(n - me), "scatter_object");

  if (n < 2) co_return found.list();
  if (me == 0) {
    const std::vector<int> list{1, 2, 3};
    co_await world.send_objects(to{1}, std::string("hello"), 123, list);
    co_await world.send_object(parameters_of(5), to{1}, tag{4});
    co_await world.send_object(std::string("not a number"), to{1}, tag{5});
    co_await world.send_object(42, to{1}, tag{5});
  } else if (me == 1) {
    auto three = world.template recv_objects<std::string, int, std::vector<int>>(from{0});
    const auto [text, number, list] = co_await three;
    found.expect(text == "hello" && number == 123 && list == std::vector<int>{1, 2, 3}, "recv_objects");
    const parameters p = co_await world.template recv_object<parameters>(from_any, tag{4});
    found.equal(p, parameters_of(5), "recv_object");
    std::optional<error> wrong;
    try {
      static_cast<void>(co_await world.template recv_object<int>(from{0}, tag{5}));
    } catch (const error& e) {
      wrong.emplace(e);
    }
    found.expect(wrong && wrong->condition() == errc::wrong_type, "a string was taken for a number");
    if (wrong) {
      const std::string said = wrong->what();
      found.expect(said.find("string") != std::string::npos && said.find("int") != std::string::npos,
                   "a wrong type does not name both: " + said);
    }
    const int after = co_await world.template recv_object<int>(from{0}, tag{5});
    found.equal(after, 42, "after a wrong type the next message is lost");
  }
  found.equal(co_await world.all_reduce(1, sum{}), n, "the communicator does not go on after a wrong type");
  co_return found.list();
}

}  // namespace harness
