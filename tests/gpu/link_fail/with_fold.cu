// SPDX-License-Identifier: BSL-1.0
// The lines that missing_fold.cpp is short of; device/ipc.cpp needs them and one more.
#include <cohort/gpu/fold.cuh>
#include <cohort/gpu/quantised_fold.cuh>

namespace my {
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
}  // namespace my

COHORT_INSTANTIATE_FOLD(float, my::largest_magnitude)
COHORT_INSTANTIATE_QUANTISED(float, cohort::sum)
COHORT_INSTANTIATE_QUANTISED(cohort::bfloat16, cohort::average, cohort::float8_blocks<cohort::float8_e5m2, 32>)
