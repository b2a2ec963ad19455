// SPDX-License-Identifier: BSL-1.0
// The fold of the functor of link_fail/with_fold.cu as work of a stream of host_runtime.cpp, by the arithmetic of the
// kernels. Linked in the place of the .cu.
#include <cohort/gpu/fold_element.cuh>

#include "host_runtime.hpp"

namespace my {
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
}  // namespace my

template <class T, class Op>
void cohort::write_COHORT_INSTANTIATE_FOLD<T, Op>::in_one_cu_file(const fold_sources<T>& from, T* out,
                                                                  std::size_t count, const Op& op, int ranks,
                                                                  cudaStream_t s) {
  const detail::fold_arithmetic<T, Op> how{detail::make_applied<T>(op), ranks};
  gpu_test::enqueue_on_host(s, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      auto total = how.first(from.at(0)[i]);
      for (int r = 1; r < from.ranks; ++r) total = how.next(total, from.at(r)[i]);
      out[i] = how.last(total);
    }
  });
}
template void cohort::write_COHORT_INSTANTIATE_FOLD<float, my::largest_magnitude>::in_one_cu_file(
    const fold_sources<float>&, float*, std::size_t, const my::largest_magnitude&, int, cudaStream_t);
