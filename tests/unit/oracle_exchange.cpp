// SPDX-License-Identifier: BSL-1.0
// all_to_all, all_to_all_v, barrier, send, recv and exchange against the oracle: every algorithm, count and form.
#include "../support/oracle_exchange.hpp"
#include "../support/oracle_local.hpp"
#include "../support/oracle_messages.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>

using namespace oracle;

namespace {

template <class T>
task<> all_to_alls(checker<local>& c) {
  return all_to_all_matrix<T>(c, counts_for(c.size(), prime), prime);
}
template <class T>
task<> messages(checker<local>& c) {
  return message_matrix<T>(c, {0, 1, 17, prime});
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("oracle: all_to_all and all_to_all_v", T, all_to_all_test) {
  require_all_algorithms(on_local_worlds(all_to_alls<T>), {operation_kind::all_to_all, operation_kind::all_to_all_v});
}
TEST_CASE_TEMPLATE_APPLY(all_to_all_test, moved_types);

TEST_CASE("oracle: barrier") {
  std::atomic<int> arrivals{0};
  for (const int n : world_sizes) {
    arrivals = 0;
    const auto check = [&](checker<local>& c) { return barrier_matrix(c, arrivals, 20); };
    require_all_algorithms(on_local_worlds(check, std::span(&n, 1)), {operation_kind::barrier});
  }
}

// complex: the longest blocks of them are longer than what the ranks of a process buffer for each other
TEST_CASE_TEMPLATE("oracle: send, recv and exchange", T, std::int32_t, complex, rgb) {
  const tally counts = on_local_worlds(messages<T>);
  for (const operation_kind kind : message_kinds) CHECK(counts.of(kind, {}) > 0);
}
