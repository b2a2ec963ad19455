// SPDX-License-Identifier: BSL-1.0
// A functor of the program's own, in a .cpp, for which no .cu has COHORT_INSTANTIATE_FOLD, and 8-bit floats for which none
// has COHORT_INSTANTIATE_QUANTISED: the linker's messages must name what to write.
#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/quantised_peers.hpp>

namespace my {
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
}  // namespace my

int main(int argc, char**) {
  const cohort::communicator<cohort::nccl> world{std::shared_ptr<cohort::detail::nccl_party>()};
  if (argc < 2) return 0;
  static_cast<void>(world.all_reduce(cohort::device_span<float>(), my::largest_magnitude{}));
  const cohort::local_ranks one(1);
  cohort::quantised_all_reduce<float>(one, {}, {}, cohort::sum{});
}
