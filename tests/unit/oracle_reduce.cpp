// SPDX-License-Identifier: BSL-1.0
// reduce against the oracle: every algorithm, root, count and form; functors that commute and that do not.
#include "../support/oracle_reduce.hpp"
#include "../support/oracle_local.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oracle;

namespace {

template <class T, class Op>
void reduces(std::size_t large) {
  const auto check = [large](checker<local>& c) {
    return reduce_matrix<T, Op>(c, counts_for(c.size(), large), all_roots(c.size()));
  };
  tally counts = on_local_worlds(check);
  if constexpr (cohort::is_commutative<Op, T>) {
    require_all_algorithms(counts, {operation_kind::reduce});
  } else {
    CHECK(counts.of(operation_kind::reduce, algorithm::binomial) > 0);
    CHECK(counts.of(operation_kind::reduce, algorithm::halving_gather) > 0);
    CHECK(counts.of(operation_kind::reduce, algorithm::circulant) == 0);
    CHECK(counts.of(operation_kind::reduce, algorithm::reduce_scatter_gather) == 0);
  }
}

}  // namespace

TEST_CASE("oracle: reduce of integers") {
  reduces<std::int32_t, cohort::sum>(prime);
  reduces<std::int32_t, modular_sum>(smaller_prime);
}
TEST_CASE("oracle: reduce of floats") { reduces<float, cohort::premultiplied_sum<double>>(smaller_prime); }
TEST_CASE("oracle: reduce of 16-bit floats") { reduces<cohort::bfloat16, cohort::average>(smaller_prime); }
TEST_CASE("oracle: reduce by functors that do not commute") { reduces<matrix2, multiply>(prime); }

// Left out under a sanitizer: their arithmetic is that of unit/fold, and the rest does not depend on it.
#if !COHORT_TEST_SANITIZED
TEST_CASE("oracle: reduce of more floats") {
  reduces<float, cohort::sum>(prime);
  reduces<float, cohort::average>(smaller_prime);
  reduces<cohort::half, cohort::sum>(prime);
}
TEST_CASE("oracle: reduce of complex numbers") { reduces<complex, cohort::sum>(prime); }
TEST_CASE("oracle: reduce of structs") { reduces<vec3, add_vec3>(smaller_prime); }
TEST_CASE("oracle: reduce of strings") { reduces<word, concatenate>(smaller_prime); }
#endif

TEST_CASE("oracle: reduce of a vector that a pipeline cuts into many segments") {
  const auto check = [](checker<local>& c) {
    return reduce_matrix<std::int32_t, cohort::sum>(c, {harness::sanitized ? 150001 : 300007}, all_roots(c.size()));
  };
  constexpr std::array<int, 3> all{3, 5, 8};
  const auto sizes = std::span(all).first(harness::sanitized ? 1 : all.size());
  require_all_algorithms(on_local_worlds(check, sizes), {operation_kind::reduce});
}
