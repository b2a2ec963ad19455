// SPDX-License-Identifier: BSL-1.0
// broadcast and scatter against the oracle: every algorithm, root, count and form.
#include "../support/oracle_gather.hpp"
#include "../support/oracle_local.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oracle;

namespace {

constexpr std::size_t prime = 10007;

template <class T>
task<> broadcasts(checker<local>& c) {
  return broadcast_matrix<T>(c, counts_for(c.size(), prime), all_roots(c.size()));
}
template <class T>
task<> scatters(checker<local>& c) {
  return scatter_matrix<T>(c, counts_for(c.size(), prime), all_roots(c.size()), prime);
}

}  // namespace

TEST_CASE_TEMPLATE("oracle: broadcast", T, std::int32_t, float, cohort::half, cohort::bfloat16, complex, rgb) {
  require_all_algorithms(on_local_worlds(broadcasts<T>), {operation_kind::broadcast});
}

TEST_CASE_TEMPLATE("oracle: scatter and scatter_v", T, std::int32_t, float, cohort::half, cohort::bfloat16, complex,
                   rgb) {
  require_all_algorithms(on_local_worlds(scatters<T>), {operation_kind::scatter, operation_kind::scatter_v});
}

TEST_CASE("oracle: broadcast of a vector that a pipeline cuts into many segments") {
  constexpr std::size_t megabyte_and_more = 300007;
  const auto check = [](checker<local>& c) {
    return broadcast_matrix<std::int32_t>(c, {megabyte_and_more}, all_roots(c.size()));
  };
  constexpr std::array<int, 3> sizes{3, 5, 8};
  require_all_algorithms(on_local_worlds(check, sizes), {operation_kind::broadcast});
}
