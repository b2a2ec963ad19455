// SPDX-License-Identifier: BSL-1.0
// scan and exclusive_scan against the oracle: every count and form, with an identity and with an initial value.
#include "../support/oracle_scan.hpp"
#include "../support/oracle_local.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using namespace oracle;

namespace {

template <class T, class Op>
void scans(std::size_t large) {
  const auto check = [large](checker<local>& c) { return scan_matrix<T, Op>(c, counts_for(c.size(), large)); };
  require_all_algorithms(on_local_worlds(check), {operation_kind::scan, operation_kind::exclusive_scan});
}

}  // namespace

TEST_CASE("oracle: scan of integers") {
  scans<std::int32_t, cohort::sum>(prime);
  scans<std::int32_t, modular_sum>(smaller_prime);
}
TEST_CASE("oracle: scan of floats") { scans<float, cohort::premultiplied_sum<double>>(smaller_prime); }
TEST_CASE("oracle: scan of 16-bit floats") { scans<cohort::half, cohort::sum>(smaller_prime); }
TEST_CASE("oracle: scan by functors that do not commute") { scans<matrix2, multiply>(prime); }

// Left out under a sanitizer: their arithmetic is that of unit/fold, and the rest does not depend on it.
#if !COHORT_TEST_SANITIZED
TEST_CASE("oracle: scan of more floats") {
  scans<float, cohort::sum>(prime);
  scans<float, cohort::max>(smaller_prime);
  scans<cohort::bfloat16, cohort::sum>(smaller_prime);
}
TEST_CASE("oracle: scan of complex numbers") { scans<complex, cohort::sum>(smaller_prime); }
TEST_CASE("oracle: scan of structs") { scans<vec3, add_vec3>(smaller_prime); }
TEST_CASE("oracle: scan of strings") { scans<word, concatenate>(smaller_prime); }
#endif
