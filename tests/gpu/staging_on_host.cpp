// SPDX-License-Identifier: BSL-1.0
// Staging without a device: on which device's streams it copies, when a message has come, and what its errors say. With
// CUDA's functions of host_runtime.cpp.
#include <cohort/gpu/staging.hpp>
#include <cohort/sync_wait.hpp>

#include "host_runtime.hpp"
#include "support.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <thread>

namespace {

using namespace cohort;
using namespace std::chrono_literals;

/// Memory of device 1 that holds `value` a while from now, by work of its default stream.
device_buffer<float> filled_later(float value) {
  const device_scope there(device{1});
  device_buffer<float> b(1);
  *b.data() = 0;
  gpu_test::enqueue_on_host(nullptr, [p = b.data(), value] {
    std::this_thread::sleep_for(20ms);
    *p = value;
  });
  return b;
}

// A default stream is that of the device of the staging, whichever is current.
void default_streams() {
  for (const int current : {0, 1}) {
    host_staging gpu{device{1}};
    const device_scope users(device{current});
    const on where{nullptr};
    const device_buffer<float> in = filled_later(7);
    device_buffer<float> out = filled_later(3);
    float seen = -1;
    const auto call = [&](std::span<const float> from, std::span<float> to) -> task<> {
      seen = from[0];
      to[0] = 9;
      co_return;
    };
    auto read = gpu.through(where, call, reads(in), writes(out));
    sync_wait(std::move(read));
    EXPECT(seen == 7);
    {
      const device_scope there(device{1});
      detail::check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    }
    EXPECT(*out.data() == 9);
    const auto write = [](std::span<float> to) -> task<> {
      to[0] = 11;
      co_return;
    };
    device_buffer<float> later = filled_later(3);
    auto only_back = gpu.through(where, write, writes(later));
    sync_wait(std::move(only_back));
    EXPECT(*later.data() == 11);
    EXPECT(current_device().index == current);
  }
}

// A message is in its memory when the copy returns: a stream that does not wait for the default stream may read it.
void messages_have_come() {
  device_buffer<float> b(1);
  *b.data() = 0;
  gpu_test::enqueue_on_host(nullptr, [] { std::this_thread::sleep_for(20ms); });
  const float sent = 5;
  detail::copy_on_device_or_host(b.data(), &sent, sizeof sent);
  EXPECT(*b.data() == 5);
}

// It knows of no rank, and names none.
void errors_name_no_rank() {
  host_staging gpu{device{0}};
  const stream s;
  device_buffer<float> b(1);
  const auto call = [](std::span<const float>) -> task<> { co_return; };
  gpu_test::set_capturing(s.get(), true);
  bool thrown = false;
  try {
    auto op = gpu.through(on{s}, call, reads(b));
    sync_wait(std::move(op));
  } catch (const error& e) {
    const std::string_view text = e.what();
    thrown = e.condition() == errc::invalid_argument && e.rank() == -1 && text.find(" rank ") == text.npos &&
             text.find("host_staging on device 0: the stream is being captured") != text.npos;
    if (!thrown) std::printf("  rank %d: %s\n", e.rank(), e.what());
  }
  EXPECT(thrown);
  gpu_test::set_capturing(s.get(), false);
}

}  // namespace

int main() {
  gpu_test::set_host_devices(2);
  default_streams();
  messages_have_come();
  errors_name_no_rank();
  return gpu_test::conclude("staging_on_host");
}
