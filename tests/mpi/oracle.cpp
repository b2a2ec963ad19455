// SPDX-License-Identifier: BSL-1.0
// The oracle over MPI: every function, by every schedule and by MPI's own collectives, against what it must give. Run by
// mpirun with the names of parts; rank 0 says how much was checked.
#include "../support/oracle_mixed.hpp"
#include "../support/oracle_movements.hpp"
#include "../support/oracle_reduce.hpp"
#include "../support/oracle_scan.hpp"
#include "in_turn.hpp"
#include "shared_counter.hpp"

#include <cohort/backend/mpi.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

using namespace oracle;

namespace {

using remote = cohort::mpi;
constexpr std::size_t long_prime = 100003;  // of int32, longer than any message that MPI sends eagerly

task<> short_blocks(checker<remote>& c) {
  auto all = movements(c, prime);
  co_await all;
}

task<> long_blocks(checker<remote>& c) {
  auto all = long_movements(c, long_prime, 300007);
  co_await all;
}

task<> reductions(checker<remote>& c) {
  auto everywhere = all_reduce_matrix<float, cohort::average>(c, counts_for(c.size(), prime));
  co_await everywhere;
  auto integers = all_reduce_matrix<std::int64_t, cohort::max>(c, {0, 1, 1009});
  co_await integers;
  auto lowest = all_reduce_matrix<double, cohort::min>(c, {1, 1009});
  co_await lowest;
  auto ordered = all_reduce_matrix<matrix2, multiply>(c, counts_for(c.size(), prime));
  co_await ordered;
  auto with_state = all_reduce_matrix<std::int32_t, modular_sum>(c, {1, 1009});
  co_await with_state;
  auto rooted = reduce_matrix<cohort::half, cohort::sum>(c, counts_for(c.size(), 1009), all_roots(c.size()));
  co_await rooted;
  auto rooted_in_order = reduce_matrix<word, concatenate>(c, {0, 1, 1009}, all_roots(c.size()));
  co_await rooted_in_order;
  auto scattered =
      reduce_scatter_matrix<float, cohort::sum>(c, counts_for(c.size(), 1009), ragged_counts(c.size(), prime));
  co_await scattered;
  auto scattered_in_order = reduce_scatter_matrix<matrix2, multiply>(c, {0, 1, 1009}, ragged_counts(c.size(), 1009));
  co_await scattered_in_order;
  auto scanned = scan_matrix<word, concatenate>(c, counts_for(c.size(), 1009));
  co_await scanned;
  auto long_ones = all_reduce_matrix<std::int32_t, cohort::sum>(c, {300007});
  co_await long_ones;
  auto long_rooted = reduce_matrix<std::int32_t, cohort::sum>(c, {300007}, {c.size() - 1});
  co_await long_rooted;
}

task<> messages(checker<remote>& c) {
  auto all = message_matrix<std::int32_t>(c, {0, 1, 17, prime});
  co_await all;
  const shared_counter arrivals(c.world());
  auto barriers = barrier_matrix(c, arrivals.get(), 100);
  co_await barriers;
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 5000; ++i) lengths.push_back(i % 1000 == 999 ? long_prime : i % 17);
  auto posted_late = check_order<std::int32_t>(c, lengths, false);
  co_await posted_late;
  auto posted_first = check_order<std::int32_t>(c, lengths, true);
  co_await posted_first;
  auto barrier = c.world().barrier();
  co_await barrier;
  auto from_any = check_from_any<std::int32_t>(c, 3, 90);
  co_await from_any;
}

task<> in_flight(checker<remote>& c) {
  const char* const given = std::getenv("COHORT_TEST_SEED");
  const std::uint64_t seed = given == nullptr ? 7 : std::strtoull(given, nullptr, 10);
  auto many = check_in_flight(c, 48);
  co_await many;
  auto random_calls = check_random_calls(c, seed, 200);
  co_await random_calls;
}

struct part {
  std::string_view name;
  task<> (*check)(checker<remote>&);
  std::initializer_list<operation_kind> kinds;
};
const part parts[] = {
    {"movements",
     short_blocks,
     {operation_kind::broadcast, operation_kind::scatter, operation_kind::scatter_v, operation_kind::gather,
      operation_kind::gather_v, operation_kind::all_gather, operation_kind::all_gather_v, operation_kind::all_to_all,
      operation_kind::all_to_all_v}},
    {"long_movements", long_blocks, {operation_kind::broadcast, operation_kind::all_gather}},
    {"reductions",
     reductions,
     {operation_kind::all_reduce, operation_kind::reduce, operation_kind::reduce_scatter,
      operation_kind::reduce_scatter_v, operation_kind::scan, operation_kind::exclusive_scan}},
    {"messages", messages, {operation_kind::barrier}},
    {"in_flight", in_flight, {}},
};

int run_part(std::string_view wanted) {
  for (const part& p : parts) {
    if (p.name != wanted) continue;
    has_natives = true;
    auto rank_main = [&p](communicator<remote> world) -> task<int> {
      tally counts;
      checker<remote> c(world, counts);
      auto work = p.check(c);
      co_await work;
      for (const operation_kind kind : p.kinds) {
        for (const algorithm how : algorithms_of(kind)) {
          // A world of one carries some calls out at once, by no algorithm: their results are checked all the same.
          if (counts.of(kind, how) > 0 || counts.only_worlds_of_one()) continue;
          std::fprintf(stderr, "%s by %s was not checked\n", std::string(name(kind)).c_str(),
                       std::string(to_string(how)).c_str());
          co_return 1;
        }
      }
      if (c.rank() == 0) std::printf("%zu results checked on rank 0 of %d\n", counts.total(), c.size());
      co_return counts.total() > 0 ? 0 : 1;
    };
    return cohort::run(rank_main);
  }
  std::fprintf(stderr, "oracle PART: expected movements, long_movements, reductions, messages or in_flight\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) { return mpi_test::in_turn(argc, argv, run_part); }
