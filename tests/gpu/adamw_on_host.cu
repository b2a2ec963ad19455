// SPDX-License-Identifier: BSL-1.0
// The sharded optimiser without a device: on which one it works, whichever is current, what it does of no elements, and what
// it refuses. Its kernels are launched and not carried out; with CUDA's functions of host_runtime.cpp and host_kernels.cpp,
// and NCCL's of host_nccl.cpp.
#include <cohort/nccl/sharded_adamw.cuh>

#include "host_kernels.hpp"
#include "nccl_ranks.hpp"
#include "support.hpp"

#include <memory>

namespace {

using namespace cohort;
using gpu_test::launched;
using gpu_test::launched_elsewhere;

void another_device_is_current(communicator<nccl>& world, on here) {
  device_buffer<bfloat16> weights(64);
  device_buffer<bfloat16> gradients(64);
  const device mine = world.on_device();
  {
    const device_scope elsewhere(device{1 - mine.index});
    sharded_adamw<bfloat16> optimiser(world, weights.device_view(), {}, here);
    CHECK(detail::place_of(optimiser.master().data()).device == mine.index);
    CHECK(launched == 1);
    static_cast<void>(optimiser.step(gradients.device_view(), weights.device_view(), here));
    CHECK(launched == 5 && launched_elsewhere == 0);
    CHECK(current_device().index == 1 - mine.index);
    on_host(world.enqueued(here)).wait();
  }
}

// The squared norm of nothing is written too: whoever adds those of all ranks reads it.
void of_nothing(communicator<nccl>& world, on here) {
  device_buffer<float> norm(1 + squared_norm_parts);
  const auto exchange = [&](const squared_norm& where) {
    const int before = launched;
    static_cast<void>(fused_reduce_scatter<float>(world, device_span<const bfloat16>(), device_span<float>(), sum{},
                                                  unchanged{}, unchanged{}, where, here));
    return launched - before;
  };
  CHECK(exchange({norm.data(), norm.data() + 1}) == 2);
  CHECK(exchange({}) == 0);
}

}  // namespace

int main() {
  gpu_test::on_ranks(2, another_device_is_current);
  for (const int n : {1, 2}) gpu_test::on_ranks(n, of_nothing);
  const communicator<nccl> none{std::shared_ptr<detail::nccl_party>()};
  EXPECT(gpu_test::throws(
      errc::not_a_member, [&] { sharded_adamw<bfloat16>(none, {}, {}, on{nullptr}); }, "sharded_adamw", "is_member()"));
  return gpu_test::conclude("adamw_on_host");
}
