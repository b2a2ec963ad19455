// SPDX-License-Identifier: BSL-1.0
// Several ranks with buffers on one device, over a communicator of the host: every kind of call, staged through pinned
// memory, and the device work before and after it in the order of the stream.
#include <cohort/gpu/staging.hpp>
#include <cohort/run_local.hpp>

#include "../support.hpp"

#include <numeric>
#include <vector>

namespace {

using namespace cohort;

task<> rank_main(communicator<inproc> world) {
  const stream s;
  const on here{s};
  host_staging gpu{device{0}};
  const auto n = static_cast<std::size_t>(world.size());
  const std::size_t count = 1001;
  std::vector<float> start(count);
  std::iota(start.begin(), start.end(), static_cast<float>(world.rank()));
  device_buffer<float> mine(count);
  device_buffer<float> all(count * n);
  const auto read = [&](const device_buffer<float>& of) {
    std::vector<float> host(of.size());
    copy_to_host(of.device_view(), std::span(host), s.get());
    s.synchronize();
    return host;
  };

  copy_to_device<float>(start, mine.device_view(), s.get());
  const auto sum_up = [&](std::span<float> x) { return world.all_reduce(x, sum{}); };
  co_await gpu.through(here, sum_up, updates(mine));
  const float ranks_sum = static_cast<float>(n * (n - 1) / 2);
  std::vector<float> expected(count);
  for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<float>(n * i) + ranks_sum;
  EXPECT(read(mine) == expected);

  copy_to_device<float>(start, mine.device_view(), s.get());
  const auto gather_all = [&](std::span<const float> in, std::span<float> out) { return world.all_gather(in, out); };
  co_await gpu.through(here, gather_all, reads(mine), writes(all));
  std::vector<float> everybody;
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < count; ++i) everybody.push_back(static_cast<float>(r + i));
  }
  EXPECT(read(all) == everybody);

  const auto from_last = [&](std::span<float> x) { return world.broadcast(x, root{world.size() - 1}); };
  co_await gpu.through(here, from_last, updates(mine));
  EXPECT(read(mine) == std::vector<float>(everybody.end() - static_cast<std::ptrdiff_t>(count), everybody.end()));

  // A message with a tag, from anybody: what NCCL does not have.
  device_buffer<float> got(count);
  copy_to_device<float>(start, mine.device_view(), s.get());
  const int next = (world.rank() + 1) % world.size();
  const int before = (world.rank() + world.size() - 1) % world.size();
  const auto pass_on = [&](std::span<const float> out, std::span<float> in) {
    return world.exchange(out, to{next}, in, from{before}, tag{7});
  };
  const received r = co_await gpu.through(here, pass_on, reads(mine), writes(got));
  EXPECT(r.source == before && r.tag == 7 && r.count == count);
  // Ranks of one process have no library that would move memory of a device.
  const received again = co_await gpu.messages(here, world, pass_on, reads(mine), writes(got));
  EXPECT(again.source == before && again.count == count);
  for (std::size_t i = 0; i < count; ++i) expected[i] = static_cast<float>(i) + static_cast<float>(before);
  EXPECT(read(got) == expected);
}

}  // namespace

int main() {
  gpu_test::skip_without_device("device/staging");
  for (const int n : {1, 2, 4}) EXPECT(run_local(n, rank_main) == std::vector<int>(static_cast<std::size_t>(n), 0));
  return gpu_test::conclude("device/staging");
}
