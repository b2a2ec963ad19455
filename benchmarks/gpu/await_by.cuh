// SPDX-License-Identifier: BSL-1.0
// How long after the device the host goes on, by whatever way it waits.
#pragma once

#include "../../tests/gpu/spin.cuh"
#include "measure.cuh"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace gpu_benchmark {

/// A thread that notes when the last write of a stream's kernel is seen on the host: as early as anybody there can know.
class witness {
 public:
  witness() : thread_([this] { watch(); }) {}
  witness(const witness&) = delete;
  witness& operator=(const witness&) = delete;
  ~witness() {
    over_ = true;
    thread_.join();
  }
  void expect(const gpu_test::hold_up& hold) {
    seen_ = false;
    watched_ = &hold;
  }
  [[nodiscard]] clock_type::time_point when() const {
    while (!seen_) {}
    return at_;
  }

 private:
  void watch() {
    while (!over_) {
      const gpu_test::hold_up* const hold = watched_;
      if (hold == nullptr || !hold->ended()) continue;
      at_ = clock_type::now();
      watched_ = nullptr;
      seen_ = true;
    }
  }
  std::atomic<bool> over_{false};
  std::atomic<bool> seen_{false};
  std::atomic<const gpu_test::hold_up*> watched_{nullptr};
  clock_type::time_point at_{};
  std::thread thread_;
};

/// Microseconds from the kernel's last write, as another thread sees it, until `wait` returns: in them the kernel ends.
template <class Prepare>
void await_by(const char* name, cudaStream_t s, const Prepare& prepare, double work = 100e-6, int times = 300) {
  witness other;
  std::vector<double> each;
  for (int i = 0; i < times; ++i) {
    gpu_test::hold_up hold(s);
    const auto wait = prepare();
    other.expect(hold);
    std::thread lets_go([&hold, work] {
      const auto t = clock_type::now();
      while (seconds_since(t) < work) {}
      hold.let_go();
    });
    wait();
    const auto now = clock_type::now();
    each.push_back(std::chrono::duration<double>(now - other.when()).count() * 1e6);
    lets_go.join();
    check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
  }
  std::sort(each.begin(), each.end());
  print(std::string("after the kernel's last write, ") + name + ", median", each[each.size() / 2], "us");
  print(std::string("after the kernel's last write, ") + name + ", p99", each[each.size() * 99 / 100], "us");
}

}  // namespace gpu_benchmark
