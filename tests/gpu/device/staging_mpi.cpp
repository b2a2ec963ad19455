// SPDX-License-Identifier: BSL-1.0
// MPI ranks with buffers on a device: messages as the library can carry them and staged, short and long, from the host to
// a device, and a call that is staged always. Prints what the library said. Run by mpirun with any number of ranks.
#include <cohort/backend/mpi.hpp>
#include <cohort/gpu/staging.hpp>

#include "../support.hpp"

#include <numeric>
#include <vector>

namespace {

using namespace cohort;

task<> check(const communicator<mpi>& world) {
  const stream s;
  const on here{s};
  host_staging gpu{device{0}};
  const int next = (world.rank() + 1) % world.size();
  const int before = (world.rank() + world.size() - 1) % world.size();
  const auto read = [&](const device_buffer<float>& of) {
    std::vector<float> host(of.size());
    copy_to_host(of.device_view(), std::span(host), s.get());
    s.synchronize();
    return host;
  };
  for (const std::size_t count : {std::size_t{1}, std::size_t{900}, std::size_t{300001}}) {
    std::vector<float> start(count);
    std::iota(start.begin(), start.end(), static_cast<float>(world.rank()));
    std::vector<float> expected(count);
    std::iota(expected.begin(), expected.end(), static_cast<float>(before));
    device_buffer<float> mine(count);
    device_buffer<float> got(count);

    copy_to_device<float>(start, mine.device_view(), s.get());
    const auto pass_on = [&](std::span<const float> out, std::span<float> in) {
      return world.exchange(out, to{next}, in, from{before}, tag{7});
    };
    auto passed = gpu.messages(here, world, pass_on, reads(mine), writes(got));
    const received r = co_await passed;
    EXPECT(r.source == before && r.tag == 7 && r.count == count);
    EXPECT(read(got) == expected);

    // From the host's memory into a device's: the two ends need not be of one kind.
    device_buffer<float> from_host(count);
    auto sent = world.send(start, to{next}, tag{8});
    const auto take = [&](std::span<float> in) { return world.recv(in, from{before}, tag{8}); };
    auto taken = gpu.messages(here, world, take, writes(from_host));
    co_await taken;
    co_await sent;
    EXPECT(read(from_host) == expected);

    copy_to_device<float>(start, mine.device_view(), s.get());
    const auto largest = [&](std::span<float> x) { return world.all_reduce(x, max{}); };
    auto reduced = gpu.through(here, largest, updates(mine));
    co_await reduced;
    std::iota(expected.begin(), expected.end(), static_cast<float>(world.size() - 1));
    EXPECT(read(mine) == expected);
  }
}

}  // namespace

int main() {
  gpu_test::skip_without_device("device/staging_mpi");
  for (const auto wanted : {mpi_device_memory::as_mpi_can, mpi_device_memory::staged}) {
    mpi_options options = mpi_options_from_environment();
    options.device_memory = wanted;
    auto world = connect<mpi>(options);
    const auto& beneath = static_cast<transport::mpi_endpoint&>(world.calls().state()->engine());
    if (world.rank() == 0) {
      std::printf("this MPI library is %s: messages in device memory %s\n",
                  std::string(name(beneath.cuda_support())).c_str(),
                  beneath.takes_device_memory() ? "go to it as they are" : "are staged");
    }
    auto all = check(world);
    sync_wait(all);
  }
  return gpu_test::conclude("device/staging_mpi");
}
