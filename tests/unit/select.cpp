// SPDX-License-Identifier: BSL-1.0
// The choice of algorithms: the defaults, overrides and what is said of wrong ones.
#include <doctest/doctest.h>

#include <cohort/collective/negotiate.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/collective/window.hpp>
#include <cohort/run_local.hpp>

#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

using namespace cohort::collective;
using cohort::operation_kind;

constexpr selection_table table{};

std::string refusal(std::string_view spec) {
  selection_table t;
  try {
    t.override_with(spec);
  } catch (const cohort::error& e) {
    CHECK(e.condition() == cohort::errc::invalid_argument);
    return e.what();
  }
  return "accepted";
}

// The choice is made at compile time where everything is known.
static_assert(table.choose(operation_kind::all_reduce, 8, 4, true) == algorithm::recursive_doubling);
static_assert(table.choose(operation_kind::all_reduce, 1 << 20, 4, true) == algorithm::circulant);
static_assert(table.choose(operation_kind::all_reduce, 1 << 20, 4, false) == algorithm::halving_doubling);

}  // namespace

TEST_CASE("operation kinds and algorithms go to and from their names") {
  std::set<std::string> names;
  for (unsigned k = 1; k <= static_cast<unsigned>(cohort::last_operation_kind); ++k) {
    const auto kind = static_cast<operation_kind>(k);
    CHECK(cohort::operation_kind_of(name(kind)) == kind);
    names.emplace(name(kind));
  }
  CHECK(names.size() == static_cast<std::size_t>(cohort::last_operation_kind));
  CHECK_FALSE(names.contains("unknown operation"));
  CHECK(name(operation_kind::exclusive_scan) == "exclusive_scan");
  CHECK_FALSE(cohort::operation_kind_of("allreduce").has_value());
  CHECK(name(operation_kind{}) == "unknown operation");
  names.clear();
  for (unsigned a = 1; a <= static_cast<unsigned>(last_algorithm); ++a) {
    CHECK(algorithm_of(to_string(static_cast<algorithm>(a))) == static_cast<algorithm>(a));
    names.emplace(to_string(static_cast<algorithm>(a)));
  }
  CHECK(names.size() == static_cast<std::size_t>(last_algorithm));
  CHECK_FALSE(names.contains("no algorithm"));
  CHECK(to_string(algorithm{}) == "no algorithm");
  CHECK_FALSE(algorithm_of("").has_value());
}

TEST_CASE("every collective has a default algorithm that exists and that suits the functor") {
  for (unsigned k = 1; k <= static_cast<unsigned>(operation_kind::exclusive_scan); ++k) {
    const auto kind = static_cast<operation_kind>(k);
    for (const std::size_t bytes : {0u, 1u, 300u, 9000u, 50000u, 70000u, 1u << 30}) {
      for (const int ranks : {1, 2, 3, 4, 7, 8, 1000}) {
        for (const bool commutative : {true, false}) {
          const auto* found = find_implementation(kind, table.choose(kind, bytes, ranks, commutative));
          REQUIRE(found != nullptr);
          REQUIRE((commutative || !found->needs_commutative));
        }
      }
    }
  }
}

TEST_CASE("ranks that share fewer cores send fewer and longer messages, for longer") {
  const means crowd{true, false, false, true};
  const means room{};
  const auto chosen = [](operation_kind kind, std::size_t bytes, int ranks, bool commutative, const means& usable) {
    return table.choose(kind, bytes, ranks, commutative, usable);
  };
  using enum algorithm;
  for (const int ranks : {3, 4, 8}) {
    for (const std::size_t bytes : {65536U, 1U << 30}) {
      for (const operation_kind kind : {operation_kind::broadcast, operation_kind::reduce}) {
        CHECK(chosen(kind, bytes, ranks, true, crowd) == binomial);
        CHECK(chosen(kind, bytes, ranks, true, room) == circulant);
      }
    }
    CHECK(chosen(operation_kind::gather, 8, ranks, true, crowd) == linear);
    CHECK(chosen(operation_kind::gather, 8, ranks, true, room) == binomial);
    CHECK(chosen(operation_kind::scatter, 511, ranks, true, crowd) == binomial);
    CHECK(chosen(operation_kind::scatter, 512, ranks, true, crowd) == linear);
    CHECK(chosen(operation_kind::scatter, 512, ranks, true, room) == binomial);
    for (const std::size_t bytes : {32768U, 65535U}) {
      CHECK(chosen(operation_kind::all_reduce, bytes, ranks, true, crowd) == central);
      CHECK(chosen(operation_kind::all_reduce, bytes, ranks, false, crowd) == recursive_doubling);
      CHECK(chosen(operation_kind::all_reduce, bytes, ranks, true, room) == circulant);
    }
    CHECK(chosen(operation_kind::all_reduce, 65537, ranks, true, crowd) == circulant);
    CHECK(chosen(operation_kind::reduce_scatter, 16384, ranks, true, crowd) == central);
    CHECK(chosen(operation_kind::reduce_scatter, 16384, ranks, false, crowd) == halving);
    CHECK(chosen(operation_kind::reduce_scatter, 16385, ranks, true, crowd) == circulant);
    CHECK(chosen(operation_kind::barrier, 0, ranks, true, crowd) == (ranks < 6 ? dissemination : central));
    CHECK(chosen(operation_kind::barrier, 0, ranks, true, room) == dissemination);
    CHECK(chosen(operation_kind::all_gather, 2048, ranks, true, crowd) == central);
    CHECK(chosen(operation_kind::all_gather, 2049, ranks, true, crowd) == (ranks < 6 ? circulant : central));
    CHECK(chosen(operation_kind::all_gather, 65537, ranks, true, crowd) == circulant);
    CHECK(chosen(operation_kind::all_to_all, 1024, ranks, true, crowd) == central);
    CHECK(chosen(operation_kind::all_to_all, 1025, ranks, true, crowd) == (ranks < 8 ? pairwise : central));
    CHECK(chosen(operation_kind::all_to_all, 2049, ranks, true, crowd) == pairwise);
    CHECK(chosen(operation_kind::scan, 8, ranks, true, crowd) == chain);
    CHECK(chosen(operation_kind::scan, 8, ranks, true, room) == recursive_doubling);
  }
  CHECK(chosen(operation_kind::all_reduce, 65536, 4, false, crowd) == halving_doubling);
  CHECK(chosen(operation_kind::reduce, 65536, 4, false, crowd) == binomial);
  CHECK(chosen(operation_kind::all_to_all, 8, 4, true, room) == pairwise);
  // Two ranks have nothing to choose between by that, but who does the arithmetic of a long all_reduce.
  CHECK(chosen(operation_kind::all_reduce, 262143, 2, true, crowd) == recursive_doubling);
  CHECK(chosen(operation_kind::all_reduce, 262144, 2, true, crowd) == circulant);
  CHECK(chosen(operation_kind::all_reduce, 262144, 2, false, crowd) == halving_doubling);
  CHECK(chosen(operation_kind::all_reduce, 262144, 2, true, room) == recursive_doubling);
  for (const operation_kind kind :
       {operation_kind::broadcast, operation_kind::all_reduce, operation_kind::scan, operation_kind::reduce,
        operation_kind::gather, operation_kind::scatter, operation_kind::all_to_all, operation_kind::barrier,
        operation_kind::all_gather, operation_kind::reduce_scatter}) {
    for (const std::size_t bytes : {8U, 65536U, 1U << 20, 4U << 20}) {
      if (kind == operation_kind::all_reduce && bytes == 1U << 20) continue;
      CHECK(chosen(kind, bytes, 2, true, crowd) == chosen(kind, bytes, 2, true, room));
    }
  }
}

TEST_CASE("point to point operations have nothing to choose") {
  CHECK_THROWS_WITH_AS(static_cast<void>(table.choose(operation_kind::send, 8, 2, true)),
                       "no algorithm is listed for send", cohort::error);
}

TEST_CASE("default switch points") {
  const auto all_reduce = [](std::size_t bytes, int ranks, bool commutative) {
    return table.choose(operation_kind::all_reduce, bytes, ranks, commutative);
  };
  CHECK(all_reduce(32767, 8, true) == algorithm::recursive_doubling);
  CHECK(all_reduce(32768, 8, true) == algorithm::circulant);
  CHECK(all_reduce(32768, 8, false) == algorithm::halving_doubling);
  CHECK(all_reduce(32768, 3, false) == algorithm::recursive_doubling);
  CHECK(all_reduce(262143, 3, false) == algorithm::recursive_doubling);
  CHECK(all_reduce(262144, 3, false) == algorithm::halving_doubling);
  CHECK(all_reduce(1048576, 2, true) == algorithm::recursive_doubling);
  CHECK(all_reduce(1048577, 2, true) == algorithm::circulant);
  CHECK(all_reduce(1048576, 2, false) == algorithm::recursive_doubling);
  CHECK(all_reduce(1048577, 2, false) == algorithm::halving_doubling);
  CHECK(table.choose(operation_kind::broadcast, 65535, 16, true) == algorithm::binomial);
  CHECK(table.choose(operation_kind::broadcast, 65536, 16, true) == algorithm::circulant);
  CHECK(table.choose(operation_kind::broadcast, 65536, 2, true) == algorithm::binomial);
  CHECK(table.choose(operation_kind::reduce, 65536, 16, true) == algorithm::circulant);
  CHECK(table.choose(operation_kind::reduce, 65536, 16, false) == algorithm::halving_gather);
  CHECK(table.choose(operation_kind::reduce, 65535, 16, false) == algorithm::binomial);
  CHECK(table.choose(operation_kind::gather, 8192, 16, true) == algorithm::binomial);
  CHECK(table.choose(operation_kind::gather, 8193, 16, true) == algorithm::linear);
  CHECK(table.choose(operation_kind::all_to_all, 256, 8, true) == algorithm::bruck);
  CHECK(table.choose(operation_kind::all_to_all, 257, 8, true) == algorithm::pairwise);
  CHECK(table.choose(operation_kind::all_to_all, 256, 7, true) == algorithm::pairwise);
  CHECK(table.choose(operation_kind::reduce_scatter, 8, 5, true) == algorithm::circulant);
  CHECK(table.choose(operation_kind::reduce_scatter, 8, 5, false) == algorithm::halving);
}

TEST_CASE("ranks that share memory use it, unless messages are faster; what may go either way begins there") {
  constexpr means in_memory{true, true, false, false};
  constexpr std::size_t mib = std::size_t{1} << 20;
  for (const auto& [kind, bytes, ranks, past] : {
           std::tuple{operation_kind::scatter, mib / 8 - 1, 4, algorithm::shared_memory},
           std::tuple{operation_kind::scatter, mib / 8, 4, algorithm::shared_memory},
           std::tuple{operation_kind::all_to_all, mib / 4 - 1, 2, algorithm::shared_memory},
           std::tuple{operation_kind::all_to_all, mib / 4, 2, algorithm::shared_memory},
           std::tuple{operation_kind::all_to_all, mib / 4 - 1, 4, algorithm::shared_memory},
           std::tuple{operation_kind::all_to_all, mib / 4, 4, algorithm::shared_memory},
           std::tuple{operation_kind::all_gather, mib / 2 - 1, 2, algorithm::shared_memory},
           std::tuple{operation_kind::all_gather, mib / 2, 2, algorithm::shared_memory},
           std::tuple{operation_kind::all_gather, 64 * mib, 3, algorithm::shared_memory},
           std::tuple{operation_kind::scatter, mib / 16, 8, algorithm::linear},
           std::tuple{operation_kind::all_to_all, mib / 16, 16, algorithm::pairwise},
           std::tuple{operation_kind::broadcast, mib / 16 - 1, 2, algorithm::shared_memory},
           std::tuple{operation_kind::broadcast, mib / 16 + 1, 2, algorithm::shared_memory},
           std::tuple{operation_kind::broadcast, mib, 3, algorithm::shared_memory},
           std::tuple{operation_kind::scan, mib / 256, 2, algorithm::recursive_doubling},
           std::tuple{operation_kind::scan, mib / 256 + 1, 2, algorithm::shared_memory},
           std::tuple{operation_kind::scan, std::size_t{8}, 3, algorithm::shared_memory},
           std::tuple{operation_kind::gather, 64 * mib, 4, algorithm::shared_memory},
           std::tuple{operation_kind::all_reduce, 64 * mib, 2, algorithm::shared_memory},
           std::tuple{operation_kind::scatter_v, std::size_t{0}, 4, algorithm::shared_memory},
       }) {
    CHECK(table.choose(kind, bytes, ranks, true, in_memory) == past);
  }
  for (const auto& [kind, bytes, ranks, way] : {
           std::tuple{operation_kind::scatter, mib / 8 - 1, 4, passage::window},
           std::tuple{operation_kind::scatter, mib / 8, 4, passage::either},
           std::tuple{operation_kind::scatter, mib / 16, 8, passage::messages},
           std::tuple{operation_kind::all_to_all, mib / 4 - 1, 2, passage::window},
           std::tuple{operation_kind::all_to_all, mib / 4, 2, passage::either},
           std::tuple{operation_kind::all_to_all, mib / 4, 4, passage::either},
           std::tuple{operation_kind::all_gather, mib / 2 - 1, 2, passage::window},
           std::tuple{operation_kind::all_gather, mib / 2, 2, passage::either},
           std::tuple{operation_kind::all_gather, 64 * mib, 3, passage::window},
           std::tuple{operation_kind::broadcast, mib / 16, 2, passage::window},
           std::tuple{operation_kind::broadcast, mib / 16 + 1, 2, passage::either},
           std::tuple{operation_kind::broadcast, mib, 3, passage::window},
           std::tuple{operation_kind::scan, mib / 256, 2, passage::messages},
           std::tuple{operation_kind::scan, mib, 2, passage::window},
       }) {
    CHECK(passage_of(kind, bytes, ranks) == way);
  }
  // Of more ranks than two a backend's own do not wait until the ranks have agreed.
  constexpr selection_row own[] = {{operation_kind::all_to_all, 0, 1, false, algorithm::native}};
  const selection_table natives(own, true);
  CHECK(natives.choose(operation_kind::all_to_all, mib, 4, true, in_memory) == algorithm::native);
  CHECK(natives.choose(operation_kind::all_to_all, mib, 2, true, in_memory) == algorithm::shared_memory);
  selection_table t;
  t.override_with("scatter=shared_memory,all_to_all=bruck");
  CHECK(t.choose(operation_kind::scatter, 64 * mib, 4, true, in_memory) == algorithm::shared_memory);
  CHECK(t.choose(operation_kind::all_to_all, 8, 4, true, in_memory) == algorithm::bruck);
}

TEST_CASE("scans of more ranks than cores are chains, unless they have memory, are of two or have an override") {
  constexpr means few_cores{true, false, false, true};
  for (const auto kind : {operation_kind::scan, operation_kind::exclusive_scan}) {
    CHECK(table.choose(kind, 8, 4, true, few_cores) == algorithm::chain);
    CHECK(table.choose(kind, 8, 4, true) == algorithm::recursive_doubling);
    CHECK(table.choose(kind, 8, 2, true, few_cores) == algorithm::recursive_doubling);
    CHECK(table.choose(kind, 8, 4, true, {true, true, false, true}) == algorithm::shared_memory);
  }
  CHECK(table.choose(operation_kind::all_reduce, 8, 4, true, few_cores) == algorithm::central);
  CHECK(table.to_string().find("chain                   0           3           any, more ranks than cores\n") !=
        std::string::npos);
  selection_table t;
  t.override_with("scan=recursive_doubling");
  CHECK(t.choose(operation_kind::scan, 8, 4, true, few_cores) == algorithm::recursive_doubling);
}

TEST_CASE("an override holds at every size; one that reorders leaves functors that do not commute alone") {
  selection_table t;
  t.override_with("all_reduce=ring,broadcast=chain");
  CHECK(t.choose(operation_kind::all_reduce, 8, 2, true) == algorithm::ring);
  CHECK(t.choose(operation_kind::all_reduce, 1 << 20, 99, true) == algorithm::ring);
  CHECK(t.choose(operation_kind::all_reduce, 8, 8, false) == algorithm::recursive_doubling);
  CHECK(t.choose(operation_kind::all_reduce, 1 << 20, 8, false) == algorithm::halving_doubling);
  CHECK(t.choose(operation_kind::broadcast, 8, 2, true) == algorithm::chain);
  CHECK(t.choose(operation_kind::reduce, 8, 2, true) == algorithm::binomial);
  t.override_with("all_reduce=halving_doubling");
  CHECK(t.choose(operation_kind::all_reduce, 8, 2, false) == algorithm::halving_doubling);
  CHECK(t.choose(operation_kind::broadcast, 8, 2, true) == algorithm::chain);
  CHECK(t.override_of(operation_kind::broadcast) == algorithm::chain);
  CHECK_FALSE(t.override_of(operation_kind::reduce).has_value());
}

TEST_CASE("what was chosen before, and overridden since, changes no answer") {
  std::mt19937 random(3);
  const auto some = [&random](std::size_t n) { return random() % n; };
  selection_table used;
  constexpr operation_kind kinds[] = {operation_kind::all_reduce, operation_kind::broadcast,
                                      operation_kind::all_to_all};
  constexpr algorithm overrides[] = {algorithm::ring, algorithm::binomial, algorithm::pairwise};
  for (int i = 0; i < 20000; ++i) {
    const std::size_t k = some(3);
    const std::size_t bytes = std::size_t{1} << some(24);
    const int ranks = static_cast<int>(2 + some(9));
    const bool commutative = some(2) == 0;
    const means usable{some(2) == 0, some(2) == 0, some(2) == 0, some(2) == 0};
    if (i % 1000 == 999) used.override_with(kinds[i / 1000 % 3], overrides[i / 1000 % 3]);
    selection_table fresh;
    for (const operation_kind each : kinds) {
      if (const auto wanted = used.override_of(each)) fresh.override_with(each, *wanted);
    }
    const algorithm answer = used.choose(kinds[k], bytes, ranks, commutative, usable);
    REQUIRE(answer == fresh.choose(kinds[k], bytes, ranks, commutative, usable));
    REQUIRE(answer == used.choose(kinds[k], bytes, ranks, commutative, usable));
  }
  // An override counts at once, for what was just answered too.
  selection_table one;
  REQUIRE(one.choose(operation_kind::all_reduce, 8, 2, true, {true, false}) != algorithm::ring);
  one.override_with("all_reduce=ring");
  CHECK(one.choose(operation_kind::all_reduce, 8, 2, true, {true, false}) == algorithm::ring);
}

TEST_CASE("no override, and an override in code") {
  selection_table t;
  t.override_with("");
  CHECK(t.to_string() == table.to_string());
  t.override_with(operation_kind::all_gather, algorithm::linear);
  CHECK(t.choose(operation_kind::all_gather, 8, 2, true) == algorithm::linear);
  CHECK_THROWS_WITH_AS(t.override_with(operation_kind::all_gather, algorithm::bruck),
                       "\"bruck\" is not an algorithm of all_gather; these are circulant, ring, linear, "
                       "central, hierarchical, shared_memory",
                       cohort::error);
}

TEST_CASE("a wrong override is refused with what could stand there") {
  CHECK(refusal("all_reduce=bruck") ==
        "algorithms \"all_reduce=bruck\": in \"all_reduce=bruck\", \"bruck\" is not an algorithm of all_reduce; these "
        "are recursive_doubling, halving_doubling, circulant, ring, central, hierarchical, shared_memory");
  CHECK(refusal("barrier=dissemination,all_reduce=fast") ==
        "algorithms \"barrier=dissemination,all_reduce=fast\": in \"all_reduce=fast\", \"fast\" is not an algorithm of "
        "all_reduce; these are recursive_doubling, halving_doubling, circulant, ring, central, hierarchical, "
        "shared_memory");
  CHECK(refusal("allreduce=ring") ==
        "algorithms \"allreduce=ring\": in \"allreduce=ring\", \"allreduce\" is not an operation with algorithms; "
        "these are barrier, broadcast, scatter, scatter_v, gather, gather_v, reduce, all_reduce, all_gather, "
        "all_gather_v, reduce_scatter, reduce_scatter_v, all_to_all, all_to_all_v, scan, exclusive_scan");
  const auto says = [](const std::string& text, const char* what) { return text.find(what) != std::string::npos; };
  CHECK(says(refusal("send=ring"), "\"send\" is not an operation with algorithms"));
  CHECK(says(refusal("ring"), "in \"ring\", expected operation=algorithm, such as all_reduce=ring"));
  CHECK(says(refusal("all_reduce="), "\"\" is not an algorithm of all_reduce"));
  CHECK(says(refusal("=ring"), "\"\" is not an operation with algorithms"));
  CHECK(says(refusal("all_reduce=ring,"), "in \"\", expected operation=algorithm"));
  CHECK(says(refusal(","), "in \"\", expected operation=algorithm"));
  CHECK(says(refusal("all_reduce= ring"), "\" ring\" is not an algorithm"));
  CHECK(says(refusal("all_reduce=ring=2"), "\"ring=2\" is not an algorithm"));
  CHECK(says(refusal("all_reduce=ring,all_reduce=circulant"), "all_reduce is named twice"));
}

TEST_CASE("a refused override leaves the table as it was") {
  selection_table t;
  CHECK_THROWS_AS(t.override_with("all_reduce=ring,broadcast=ring"), cohort::error);
  CHECK(t.to_string() == table.to_string());
}

TEST_CASE("the table prints as it is tried") {
  selection_table t;
  t.override_with("all_gather=ring");
  const std::string text = t.to_string();
  CHECK(
      text.starts_with("operation         algorithm               from bytes  from ranks  functor\n"
                       "barrier           central                 0           6           any, more ranks than cores\n"
                       "barrier           dissemination           0           1           any\n"));
  CHECK(text.find("all_gather        ring                    override    override    any\n"
                  "all_gather        circulant               65537       3           any, more ranks than cores\n") !=
        std::string::npos);
  CHECK(text.find("all_reduce        circulant               1048577     2           commutative\n") !=
        std::string::npos);
}

TEST_CASE("a table of one's own") {
  constexpr selection_row rows[] = {{operation_kind::barrier, 0, 1, false, algorithm::dissemination}};
  constexpr selection_table own{rows};
  CHECK(own.rows().size() == 1);
  CHECK(own.choose(operation_kind::barrier, 0, 2, true) == algorithm::dissemination);
  CHECK_THROWS_AS(static_cast<void>(own.choose(operation_kind::scan, 0, 2, true)), cohort::error);
  const std::vector<selection_row> many(selection_table::capacity + 1, rows[0]);
  CHECK_THROWS_AS(selection_table{many}, cohort::error);
}

TEST_CASE("pipelines are cut so that segments grow with the vector and never fall under 32 KiB") {
  CHECK(pipeline_segments(algorithm::binomial, 1 << 30, 100) == 1);
  CHECK(pipeline_segments(algorithm::circulant, 1 << 30, 2) == 1);
  CHECK(pipeline_segments(algorithm::circulant, 0, 8) == 1);
  CHECK(pipeline_segments(algorithm::circulant, 65535, 8) == 1);
  CHECK(pipeline_segments(algorithm::circulant, 65536, 8) == 2);
  CHECK(pipeline_segments(algorithm::circulant, 1 << 20, 8) == 8);  // sqrt(2 * 32)
  CHECK(pipeline_segments(algorithm::chain, 1 << 20, 18) == 22);    // sqrt(16 * 32)
  CHECK(pipeline_segments(algorithm::chain, 1 << 20, 1000) == 32);
  CHECK(pipeline_segments(algorithm::chain, std::size_t{1} << 62, 1 << 21) == 1 << 20);
  CHECK(exchange_window(32768) == 32);
  CHECK(exchange_window(32769) == 4);
}

TEST_CASE("what comes to its messages later than at its call takes no collective of the backend's own") {
  // Those begin in the order of the calls, before their operations have suspended.
  std::vector<selection_row> rows;
  for (const selection_row& row : default_selection) {
    selection_row native = row;
    native.algorithm = algorithm::native;
    rows.push_back(native);
    rows.push_back(row);
  }
  const auto body = [&rows](cohort::communicator<cohort::inproc> world) -> cohort::task<> {
    world.algorithms() = selection_table{rows, true};
    for (const operation_kind kind : {operation_kind::all_gather_v, operation_kind::all_to_all_v,
                                      operation_kind::all_gather, operation_kind::all_reduce, operation_kind::scan}) {
      CAPTURE(std::string(cohort::name(kind)));
      CHECK(world.algorithms().choose(kind, 0, world.size(), true) == algorithm::native);
      cohort::transport::signature s;
      s.kind = kind;
      s.algorithm = algorithm::shared_memory;
      const cohort::call c(world.calls().state(), -1, s, {});
      CHECK(without_turn(c) != algorithm::native);
      CHECK(without_window(c, 100000, true) != algorithm::native);
      CHECK(without_window(c, 100000, false) != algorithm::native);
    }
    co_return;
  };
  cohort::run_local(2, body);
}
