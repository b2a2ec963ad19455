// SPDX-License-Identifier: BSL-1.0
// gather, all_gather and their forms in _v against the oracle: every algorithm, root, count and form.
#include "../support/oracle_gather.hpp"
#include "../support/oracle_local.hpp"

#include <doctest/doctest.h>

using namespace oracle;

namespace {

template <class T>
task<> gathers(checker<local>& c) {
  return gather_matrix<T>(c, counts_for(c.size(), prime), all_roots(c.size()), prime);
}
template <class T>
task<> all_gathers(checker<local>& c) {
  return all_gather_matrix<T>(c, counts_for(c.size(), prime), prime);
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("oracle: gather and gather_v", T, gather_test) {
  require_all_algorithms(on_local_worlds(gathers<T>), {operation_kind::gather, operation_kind::gather_v});
}
TEST_CASE_TEMPLATE_APPLY(gather_test, moved_types);

TEST_CASE_TEMPLATE_DEFINE("oracle: all_gather and all_gather_v", T, all_gather_test) {
  require_all_algorithms(on_local_worlds(all_gathers<T>), {operation_kind::all_gather, operation_kind::all_gather_v});
}
TEST_CASE_TEMPLATE_APPLY(all_gather_test, moved_types);
