// SPDX-License-Identifier: BSL-1.0
// all_reduce against the oracle: every algorithm, count and form; functors that commute, that do not, and that have a
// state; the same bits on all ranks.
#include "../support/oracle_local.hpp"
#include "../support/oracle_reduce.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oracle;

namespace {

template <class T, class Op>
void all_reduces() {
  const auto check = [](checker<local>& c) { return all_reduce_matrix<T, Op>(c, counts_for(c.size(), prime)); };
  tally counts = on_local_worlds(check);
  if constexpr (cohort::is_commutative<Op, T>) {
    require_all_algorithms(counts, {operation_kind::all_reduce});
  } else {
    // Forced upon a functor that does not commute, the others must not have been taken.
    CHECK(counts.of(operation_kind::all_reduce, algorithm::recursive_doubling) > 0);
    CHECK(counts.of(operation_kind::all_reduce, algorithm::halving_doubling) > 0);
    CHECK(counts.of(operation_kind::all_reduce, algorithm::circulant) == 0);
    CHECK(counts.of(operation_kind::all_reduce, algorithm::ring) == 0);
  }
}

}  // namespace

TEST_CASE("oracle: all_reduce of integers") {
  all_reduces<std::int32_t, cohort::sum>();
  all_reduces<std::int32_t, modular_sum>();
}
TEST_CASE("oracle: all_reduce of floats") {
  all_reduces<float, cohort::average>();
  all_reduces<float, cohort::premultiplied_sum<double>>();
}
TEST_CASE("oracle: all_reduce of 16-bit floats") { all_reduces<cohort::half, cohort::average>(); }
TEST_CASE("oracle: all_reduce by functors that do not commute") { all_reduces<matrix2, multiply>(); }

// Left out under a sanitizer: their arithmetic is that of unit/fold, and the rest does not depend on it.
#if !COHORT_TEST_SANITIZED
TEST_CASE("oracle: all_reduce of more floats") {
  all_reduces<float, cohort::sum>();
  all_reduces<float, cohort::max>();
}
TEST_CASE("oracle: all_reduce of more 16-bit floats") {
  all_reduces<cohort::half, cohort::sum>();
  all_reduces<cohort::bfloat16, cohort::sum>();
  all_reduces<cohort::bfloat16, cohort::premultiplied_sum<float>>();
}
TEST_CASE("oracle: all_reduce of complex numbers") {
  all_reduces<complex, cohort::sum>();
  all_reduces<complex, cohort::average>();
}
TEST_CASE("oracle: all_reduce of structs") { all_reduces<vec3, add_vec3>(); }
TEST_CASE("oracle: all_reduce of strings") { all_reduces<word, concatenate>(); }
#endif
