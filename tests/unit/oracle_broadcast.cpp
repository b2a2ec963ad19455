// SPDX-License-Identifier: BSL-1.0
// broadcast and scatter against the oracle: every algorithm, root, count and form.
#include "../support/oracle_gather.hpp"
#include "../support/oracle_local.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oracle;

namespace {

template <class T>
task<> broadcasts(checker<local>& c) {
  return broadcast_matrix<T>(c, counts_for(c.size(), prime), all_roots(c.size()));
}
template <class T>
task<> scatters(checker<local>& c) {
  return scatter_matrix<T>(c, counts_for(c.size(), prime), all_roots(c.size()), prime);
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("oracle: broadcast", T, broadcast_test) {
  require_all_algorithms(on_local_worlds(broadcasts<T>), {operation_kind::broadcast});
}
TEST_CASE_TEMPLATE_APPLY(broadcast_test, moved_types);

TEST_CASE_TEMPLATE_DEFINE("oracle: scatter and scatter_v", T, scatter_test) {
  require_all_algorithms(on_local_worlds(scatters<T>), {operation_kind::scatter, operation_kind::scatter_v});
}
TEST_CASE_TEMPLATE_APPLY(scatter_test, moved_types);

TEST_CASE("oracle: broadcast of a vector that a pipeline cuts into many segments") {
  constexpr std::size_t many_segments = harness::sanitized ? 150001 : 300007;
  const auto check = [](checker<local>& c) {
    return broadcast_matrix<std::int32_t>(c, {many_segments}, all_roots(c.size()));
  };
  constexpr std::array<int, 3> all{3, 5, 8};
  const auto sizes = std::span(all).first(harness::sanitized ? 1 : all.size());
  require_all_algorithms(on_local_worlds(check, sizes), {operation_kind::broadcast});
}
