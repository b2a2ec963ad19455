// SPDX-License-Identifier: BSL-1.0
// What link_fail/with_fold.cu makes, as work of a stream of host_runtime.cpp. Linked in the place of the .cu.
#include <cohort/ops.hpp>

#include "fold_by_host.hpp"

namespace my {
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
}  // namespace my

template struct cohort::write_COHORT_INSTANTIATE_FOLD<float, my::largest_magnitude>;
template struct cohort::write_COHORT_INSTANTIATE_QUANTISED<float, cohort::sum>;
template struct cohort::write_COHORT_INSTANTIATE_QUANTISED<cohort::bfloat16, cohort::average,
                                                           cohort::float8_blocks<cohort::float8_e5m2, 32>>;
