// SPDX-License-Identifier: BSL-1.0
// The line that missing_fold.cpp is short of.
#include <cohort/gpu/fold.cuh>

namespace my {
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
}  // namespace my

COHORT_INSTANTIATE_FOLD(float, my::largest_magnitude)
