// SPDX-License-Identifier: BSL-1.0
// adds: ranks on GPUs, and a functor of your own there. NCCL has no such reduction: the contributions are exchanged and
// combined by one kernel in the order of the ranks, made of the functor below. The same words as on the CPU, on buffers in
// device memory; `co_await` does not wait for the device, on_host() does.
//
//   nvcc -std=c++20 -arch=sm_90 --expt-relaxed-constexpr -I include examples/30_gpu_custom_functor.cu -lnccl -o statistics
//   ./statistics                                    # a world of one
//   cohort run -n 4 -- ./statistics /tmp/meeting    # one rank a GPU; the file is where the ranks meet, and must be new
#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/fold.cuh>
#include <cohort/launch.hpp>
#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>

#include <cstdio>
#include <span>
#include <stdexcept>
#include <vector>

struct statistics {
  float sum;
  float largest;
  int count;
};
// Runs on the device: a class at namespace scope, marked so.
struct merge {
  COHORT_HOST_DEVICE statistics operator()(const statistics& a, const statistics& b) const {
    return {a.sum + b.sum, a.largest < b.largest ? b.largest : a.largest, a.count + b.count};
  }
};

cohort::task<> measure(cohort::communicator<cohort::nccl> world) {
  const cohort::stream stream;
  std::vector<statistics> host;
  for (int i = 0; i < 1000; ++i) {
    const float x = static_cast<float>(world.rank() * 1000 + i);
    host.push_back({x, x, 1});
  }
  cohort::device_buffer<statistics> all(host.size());
  cohort::copy_to_device<statistics>(host, all.device_view(), stream.get());

  // Enqueued behind the copy, and seen by whatever is enqueued behind it.
  co_await world.all_reduce(all, merge{}, cohort::on{stream});

  cohort::pinned_buffer<statistics> result(host.size());
  cohort::copy_to_host(all.device_view(), std::span(result.data(), result.size()), stream.get());
  co_await cohort::on_host(world.enqueued(cohort::on{stream}));  // now the host may read it

  const statistics last = result[999];
  if (world.rank() == 0) {
    std::printf("of %d ranks: sum %.0f, largest %.0f\n", last.count, static_cast<double>(last.sum),
                static_cast<double>(last.largest));
  }
  const float expected = static_cast<float>(world.size() * 999 + 1000 * world.size() * (world.size() - 1) / 2);
  if (last.count != world.size() || last.sum != expected) throw std::runtime_error("the result is wrong");
}

int main(int argc, char** argv) {
  try {
    const cohort::launch_info me = cohort::launch_from_environment();
    if (me.world_size > 1 && argc < 2) {
      std::puts("several ranks need a file to meet at: give its name");
      return 2;
    }
    cohort::any_store meeting =
        me.world_size > 1 ? cohort::any_store(cohort::file_store(argv[1])) : cohort::any_store(cohort::memory_store());
    auto rank_main = measure(cohort::connect<cohort::nccl>(meeting, me.rank, me.world_size));
    cohort::sync_wait(rank_main);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
