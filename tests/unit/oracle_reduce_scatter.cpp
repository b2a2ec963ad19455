// SPDX-License-Identifier: BSL-1.0
// reduce_scatter and reduce_scatter_v against the oracle: every algorithm, count and form; functors that commute and
// that do not.
#include "../support/oracle_gather.hpp"
#include "../support/oracle_local.hpp"
#include "../support/oracle_reduce.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oracle;

namespace {

template <class T, class Op>
void reduce_scatters(std::size_t large) {
  const auto check = [large](checker<local>& c) {
    return reduce_scatter_matrix<T, Op>(c, counts_for(c.size(), large), ragged_counts(c.size(), large));
  };
  tally counts = on_local_worlds(check);
  if constexpr (cohort::is_commutative<Op, T>) {
    require_all_algorithms(counts, {operation_kind::reduce_scatter, operation_kind::reduce_scatter_v});
  } else {
    for (const operation_kind kind : {operation_kind::reduce_scatter, operation_kind::reduce_scatter_v}) {
      CHECK(counts.of(kind, algorithm::halving) > 0);
      CHECK(counts.of(kind, algorithm::pairwise) > 0);
      CHECK(counts.of(kind, algorithm::circulant) == 0);
      CHECK(counts.of(kind, algorithm::ring) == 0);
    }
  }
}

}  // namespace

TEST_CASE("oracle: reduce_scatter of integers") {
  reduce_scatters<std::int32_t, cohort::sum>(prime);
  reduce_scatters<std::int32_t, modular_sum>(smaller_prime);
}
TEST_CASE("oracle: reduce_scatter of floats") { reduce_scatters<float, cohort::average>(smaller_prime); }
TEST_CASE("oracle: reduce_scatter of 16-bit floats") {
  reduce_scatters<cohort::bfloat16, cohort::premultiplied_sum<float>>(smaller_prime);
}
TEST_CASE("oracle: reduce_scatter by functors that do not commute") {
  reduce_scatters<matrix2, multiply>(smaller_prime);
}

// Left out under a sanitizer: their arithmetic is that of unit/fold, and the rest does not depend on it.
#if !COHORT_TEST_SANITIZED
TEST_CASE("oracle: reduce_scatter of more floats") {
  reduce_scatters<float, cohort::sum>(prime);
  reduce_scatters<float, cohort::premultiplied_sum<double>>(smaller_prime);
  reduce_scatters<cohort::half, cohort::sum>(smaller_prime);
}
TEST_CASE("oracle: reduce_scatter of complex numbers") { reduce_scatters<complex, cohort::sum>(smaller_prime); }
TEST_CASE("oracle: reduce_scatter of structs") { reduce_scatters<vec3, add_vec3>(smaller_prime); }
TEST_CASE("oracle: reduce_scatter of strings") { reduce_scatters<word, concatenate>(smaller_prime); }
#endif
