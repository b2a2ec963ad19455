// SPDX-License-Identifier: BSL-1.0
// Ranks that do not call the same thing: every ordered pair of collectives, and every way in which two calls of one
// collective can differ. Each must be an error that shows both sides on every rank; none may hang or go unnoticed.
#include "../support/every_call.hpp"
#include "../support/sanitizer.hpp"
#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace {

using harness::contains;

using namespace cohort;
using namespace std::chrono_literals;
using harness::every_collective;
using harness::what_to_call;

using local_world = communicator<inproc>;
using script = std::vector<what_to_call>;

/// The sentence about what happened, without which operation of the rank it has ended.
std::string cause_of(const error& e) {
  const std::string text = e.what();
  const std::string refused = "first cause: ";
  const std::size_t later = text.find(refused);
  return later == std::string::npos ? text.substr(text.find(": ") + 2) : text.substr(later + refused.size());
}

/// The errors of all ranks, of which one follows `odd_script`. A hang would end as timed_out.
std::vector<std::optional<error>> errors_of(int ranks, int odd, const script& even_script, const script& odd_script) {
  std::vector<std::optional<error>> errors(static_cast<std::size_t>(ranks));
  const auto rank_main = [&](local_world world) -> task<> {
    world.set_timeout(5s);
    auto one = harness::first_error(world, world.rank() == odd ? odd_script : even_script);
    errors[static_cast<std::size_t>(world.rank())] = co_await one;
  };
  run_local(ranks, rank_main);
  return errors;
}

/// Every rank has the same error, of this kind and with these words.
void check_all(const std::vector<std::optional<error>>& errors, const std::vector<std::string>& words) {
  for (std::size_t r = 0; r < errors.size(); ++r) {
    CAPTURE(r);
    REQUIRE(errors[r].has_value());
    const std::string text = errors[r]->what();
    INFO(text);
    REQUIRE(errors[r]->condition() == errc::mismatch);
    CHECK(errors[r]->peer() >= 0);
    for (const std::string& word : words) CHECK(contains(text, word));
    CHECK(cause_of(*errors[r]) == cause_of(*errors[0]));
  }
}

void check_differing(const script& even_script, const script& odd_script, const std::vector<std::string>& words) {
  for (const int ranks : {2, 3, 4}) {
    for (int odd = 0; odd < ranks; ++odd) {
      CAPTURE(ranks);
      CAPTURE(odd);
      check_all(errors_of(ranks, odd, even_script, odd_script), words);
    }
  }
}

}  // namespace

TEST_CASE("mismatch: every collective in agreement is no error") {
  for (const operation_kind kind : every_collective) {
    for (const int ranks : {2, 3, 4}) {
      CAPTURE(std::string(name(kind)));
      CAPTURE(ranks);
      for (const auto& e : errors_of(ranks, -1, {{kind}}, {})) {
        if (e) FAIL(e->what());
      }
    }
  }
}

TEST_CASE("mismatch: every ordered pair of collectives") {
  for (const operation_kind a : every_collective) {
    for (const operation_kind b : every_collective) {
      if (a == b) continue;
      CAPTURE(std::string(name(a)));
      CAPTURE(std::string(name(b)));
      check_differing({{a}}, {{b}}, {std::string(name(a)) + "(", std::string(name(b)) + "(", "called"});
    }
  }
}

TEST_CASE("mismatch: the same calls in another order") {
  check_differing({{operation_kind::all_reduce}, {operation_kind::broadcast}},
                  {{operation_kind::broadcast}, {operation_kind::all_reduce}}, {"all_reduce(", "broadcast("});
  check_differing({{operation_kind::gather}, {operation_kind::scatter}},
                  {{operation_kind::scatter}, {operation_kind::gather}}, {"gather(", "scatter("});
}

TEST_CASE("mismatch: one call is left out, or made twice") {
  for (const operation_kind kind : every_collective) {
    if (kind == operation_kind::barrier) continue;
    CAPTURE(std::string(name(kind)));
    check_differing({{kind}}, {}, {std::string(name(kind)) + "(", "barrier("});
    check_differing({{kind}}, {{kind}, {kind}}, {std::string(name(kind)) + "(", "barrier("});
  }
}

TEST_CASE("mismatch: counts that differ by one, or of which one is zero") {
  for (const operation_kind kind : every_collective) {
    if (kind == operation_kind::barrier) continue;
    for (const std::size_t other : {4U, 6U, 0U}) {
      CAPTURE(std::string(name(kind)));
      CAPTURE(other);
      check_differing({{kind}}, {{kind, other}}, {});
    }
  }
}

TEST_CASE("mismatch: long vectors whose counts differ") {
  for (const operation_kind kind : every_collective) {
    if (kind == operation_kind::barrier) continue;
    CAPTURE(std::string(name(kind)));
    check_differing({{kind, 50000}}, {{kind, 50001}}, {});
  }
}

TEST_CASE("mismatch: roots that differ") {
  for (const operation_kind kind : every_collective) {
    if (!harness::detail::has_root(kind)) continue;
    for (const int ranks : {2, 3, 4, 5}) {
      if (harness::sanitized && ranks > 3) continue;
      for (int odd = 0; odd < ranks; ++odd) {
        for (int a = 0; a < ranks; ++a) {
          for (int b = 0; b < ranks; ++b) {
            if (a == b) continue;
            CAPTURE(std::string(name(kind)));
            CAPTURE(ranks);
            CAPTURE(odd);
            CAPTURE(a);
            CAPTURE(b);
            check_all(errors_of(ranks, odd, {{kind, 5, a}}, {{kind, 5, b}}),
                      {"root " + std::to_string(a), "root " + std::to_string(b)});
          }
        }
      }
    }
  }
}

namespace {

/// As errors_of, for calls that differ in their types or functors.
template <class Even, class Odd>
void check_calls(const Even& even_call, const Odd& odd_call, const std::vector<std::string>& words) {
  for (const int ranks : {2, 3}) {
    for (int odd = 0; odd < ranks; ++odd) {
      CAPTURE(ranks);
      CAPTURE(odd);
      std::vector<std::optional<error>> errors(static_cast<std::size_t>(ranks));
      const auto rank_main = [&](local_world world) -> task<> {
        world.set_timeout(5s);
        try {
          if (world.rank() == odd) {
            auto op = odd_call(world);
            co_await op;
          } else {
            auto op = even_call(world);
            co_await op;
          }
          co_await world.barrier();
        } catch (const error& e) {
          errors[static_cast<std::size_t>(world.rank())].emplace(e);
        }
      };
      run_local(ranks, rank_main);
      check_all(errors, words);
    }
  }
}

}  // namespace

TEST_CASE("mismatch: element types of one size") {
  std::vector<float> f(9);
  std::vector<std::int32_t> i(9);
  std::vector<std::uint32_t> u(9);
  check_calls([&](local_world& w) { return w.all_reduce(f, sum{}); },
              [&](local_world& w) { return w.all_reduce(i, sum{}); }, {"float32", "int32"});
  check_calls([&](local_world& w) { return w.all_reduce(u, sum{}); },
              [&](local_world& w) { return w.all_reduce(i, sum{}); }, {"uint32", " int32"});
  check_calls([&](local_world& w) { return w.broadcast(f, root{0}); },
              [&](local_world& w) { return w.broadcast(i, root{0}); }, {"float32", "int32"});
  check_calls([&](local_world& w) { return w.scan(f, sum{}); }, [&](local_world& w) { return w.scan(i, sum{}); },
              {"float32", "int32"});
  check_calls([&](local_world& w) { return w.reduce(f, max{}, root{1}); },
              [&](local_world& w) { return w.reduce(u, max{}, root{1}); }, {"float32", "uint32"});
}

TEST_CASE("mismatch: counts at the receivers on one rank, and none on another") {
  const std::string mending = "either all ranks call the form with counts at the receivers, or none does";
  const std::string none = "no counts at the receivers";
  const auto ones = [](local_world& w) { return std::vector<std::size_t>(static_cast<std::size_t>(w.size()), 1); };
  const auto many = [](local_world& w) { return std::vector<double>(static_cast<std::size_t>(w.size()), 0.25); };
  const auto gathers = [&](local_world& w) -> task<> {
    std::vector<double> in{0.25};
    std::vector<double> out = many(w);
    co_await w.gather_v(in, out, ones(w), root{0});
  };
  const auto gathers_any = [&](local_world& w) -> task<> {
    std::vector<double> in{0.25};
    static_cast<void>(co_await w.gather_v(in, root{0}));
  };
  check_calls(gathers, gathers_any, {mending, none, "gather_v(float64, root 0)"});
  const auto gives = [&](local_world& w) -> task<> {
    std::vector<double> in = many(w);
    std::vector<double> out(1);
    co_await w.scatter_v(in, ones(w), out, root{0});
  };
  const auto gives_any = [&](local_world& w) -> task<> {
    std::vector<double> in = many(w);
    static_cast<void>(co_await w.scatter_v(in, ones(w), root{0}));
  };
  check_calls(gives, gives_any, {mending, none, "scatter_v(float64, root 0)"});
  const auto exchanges = [&](local_world& w) -> task<> {
    std::vector<double> in = many(w);
    std::vector<double> out = many(w);
    co_await w.all_to_all_v(in, ones(w), out, ones(w));
  };
  const auto exchanges_any = [&](local_world& w) -> task<> {
    std::vector<double> in = many(w);
    static_cast<void>(co_await w.all_to_all_v(in, ones(w)));
  };
  check_calls(exchanges, exchanges_any, {mending, none, "all_to_all_v(float64)"});
  const auto nothing_of_all = [&](local_world& w) -> task<> {
    std::vector<double> none_here;
    std::vector<double> none_there;
    const std::vector<std::size_t> zeros(static_cast<std::size_t>(w.size()), 0);
    co_await w.all_gather_v(none_here, none_there, zeros);
  };
  const auto anything_of_all = [&](local_world& w) -> task<> {
    std::vector<double> one{0.25};
    static_cast<void>(co_await w.all_gather_v(one));
  };
  check_calls(nothing_of_all, anything_of_all, {mending, none, "all_gather_v(float64)"});
}

TEST_CASE("mismatch: functors") {
  std::vector<float> f(9);
  const auto mine = [](float a, float b) { return a + b; };
  check_calls([&](local_world& w) { return w.all_reduce(f, sum{}); },
              [&](local_world& w) { return w.all_reduce(f, max{}); }, {"sum", "max"});
  check_calls([&](local_world& w) { return w.all_reduce(f, sum{}); },
              [&](local_world& w) { return w.all_reduce(f, mine); }, {"sum"});
  check_calls([&](local_world& w) { return w.reduce(f, min{}, root{0}); },
              [&](local_world& w) { return w.reduce(f, max{}, root{0}); }, {"min", "max"});
  check_calls([&](local_world& w) { return w.scan(f, product{}); }, [&](local_world& w) { return w.scan(f, sum{}); },
              {"product", "sum"});
}

TEST_CASE("mismatch: tables of algorithms") {
  struct choice {
    operation_kind kind;
    const char* one;
    const char* other;
  };
  const choice choices[] = {
      {operation_kind::all_reduce, "all_reduce=ring", "all_reduce=recursive_doubling"},
      {operation_kind::all_reduce, "all_reduce=circulant", "all_reduce=halving_doubling"},
      {operation_kind::broadcast, "broadcast=binomial", "broadcast=chain"},
      {operation_kind::gather, "gather=binomial", "gather=linear"},
      {operation_kind::all_to_all, "all_to_all=pairwise", "all_to_all=bruck"},
  };
  for (const choice& c : choices) {
    for (int odd = 0; odd < 3; ++odd) {
      CAPTURE(c.one);
      CAPTURE(odd);
      std::vector<std::optional<error>> errors(3);
      const auto rank_main = [&](local_world world) -> task<> {
        world.set_timeout(5s);
        world.algorithms().override_with(world.rank() == odd ? c.other : c.one);
        const script calls{{c.kind}};
        auto one = harness::first_error(world, calls);
        errors[static_cast<std::size_t>(world.rank())] = co_await one;
      };
      run_local(3, rank_main);
      const auto word = [](const std::string& spec) { return "by " + spec.substr(spec.find('=') + 1); };
      check_all(errors, {word(c.one), word(c.other), "every rank must be given the same algorithms"});
    }
  }
}

TEST_CASE("mismatch: several in flight, and the first of them differs") {
  for (const int ranks : {2, 3}) {
    for (int odd = 0; odd < ranks; ++odd) {
      std::vector<int> failures(static_cast<std::size_t>(ranks));
      const auto rank_main = [&](local_world world) -> task<> {
        world.set_timeout(5s);
        std::vector<float> a(10);
        std::vector<float> b(20 * static_cast<std::size_t>(ranks));
        std::vector<float> c(20);
        // Root 0 receives in one, sends in the other: nobody's message need ever meet a receive.
        auto first = world.rank() == odd ? world.scatter(b, c, root{0}) : world.gather(c, b, root{0});
        auto second = world.all_reduce(a, sum{});
        auto third = world.barrier();
        for (operation<>* each : {&first, &second, &third}) {
          try {
            co_await *each;
          } catch (const error& e) {
            CHECK(e.condition() == errc::mismatch);
            ++failures[static_cast<std::size_t>(world.rank())];
          }
        }
      };
      run_local(ranks, rank_main);
      for (const int each : failures) CHECK(each >= 1);
    }
  }
}
