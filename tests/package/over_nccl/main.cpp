// SPDX-License-Identifier: BSL-1.0
// A program of somebody else's with the component nccl: a world of one GPU, or a clean error where there is none.
#include <cohort/backend/nccl.hpp>
#include <cohort/store/memory_store.hpp>

#include <cstdio>
#include <string_view>

int main() {
  try {
    cohort::memory_store meeting;
    const auto world = cohort::connect<cohort::nccl>(meeting, 0, 1);
    cohort::device_buffer<float> v(16);
    cohort::on_host(world.all_reduce(v, cohort::sum{})).wait();
    std::printf("a world of %d GPU\n", world.size());
  } catch (const cohort::error& e) {
    std::printf("%s\n", e.what());
    return std::string_view(e.what()).find("reaches no GPU") == std::string_view::npos ? 1 : 0;
  }
}
