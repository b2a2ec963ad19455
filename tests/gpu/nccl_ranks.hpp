// SPDX-License-Identifier: BSL-1.0
// Ranks of communicator<nccl> as threads, with a device each, where host_nccl.cpp and host_runtime.cpp are linked; and what
// their tests share.
#pragma once

#include <cohort/backend/nccl.hpp>
#include <cohort/store/memory_store.hpp>

#include "host_runtime.hpp"
#include "support.hpp"
#include "values.hpp"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

/// An expectation of one of several threads.
#define CHECK(...) ::gpu_test::check_on_thread(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

namespace gpu_test {

inline bool check_on_thread(bool good, const char* what, const char* file, int line) {
  static std::mutex counting;
  const std::lock_guard lock(counting);
  return expect(good, what, file, line);
}

/// A rank, its stream, and its buffers.
struct place {
  const cohort::communicator<cohort::nccl>& world;
  cohort::on here;
  std::size_t n = static_cast<std::size_t>(world.size());
  std::size_t me = static_cast<std::size_t>(world.rank());

  template <class T>
  [[nodiscard]] cohort::device_buffer<T> filled(const std::vector<T>& with) const {
    cohort::device_buffer<T> b(with.size());
    cohort::copy_to_device<T>(with, b.device_view(), here.stream);
    return b;
  }
  template <class T>
  [[nodiscard]] std::vector<T> read(cohort::device_span<T> from) const {
    std::vector<T> v(from.size(), value_of<T>(0, 0));
    cohort::copy_to_host<T>(from, std::span(v), here.stream);
    cohort::on_host(world.enqueued(here)).wait();
    return v;
  }
  template <class T>
  void check(const cohort::device_buffer<T>& found, const std::vector<T>& expected, const char* what) const {
    check_view(found.device_view(), expected, what);
  }
  template <class T>
  void check_view(cohort::device_span<const T> found, const std::vector<T>& expected, const char* what) const {
    const std::vector<T> v = read(cohort::device_span<T>(const_cast<T*>(found.data()), found.size()));
    CHECK(same(v, expected, what, world.size()));
  }
};

/// Connects n ranks and gives each the thread that calls `body`; an exception that leaves it is a failure. `blocking` and
/// `longest` as in nccl_options.
inline void on_ranks(int n, const std::function<void(cohort::communicator<cohort::nccl>&, cohort::on)>& body,
                     bool blocking = false, std::chrono::milliseconds longest = std::chrono::seconds{60}) {
  set_host_devices(n);
  cohort::memory_store meeting;
  std::vector<std::thread> ranks;
  for (int r = 0; r < n; ++r) {
    ranks.emplace_back([&, r] {
      cohort::memory_store mine = meeting;
      const cohort::device_scope here(cohort::device{r});
      cohort::nccl_options o;
      o.on_device = cohort::device{r};
      o.timeout = longest;
      o.blocking = blocking;
      try {
        auto world = cohort::connect<cohort::nccl>(mine, r, n, o);
        const cohort::stream s;
        world.set_stream(cohort::on{s});
        body(world, cohort::on{s});
        s.synchronize();
      } catch (const std::exception& e) {
        std::printf("rank %d of %d: %s\n", r, n, e.what());
        CHECK(false);
      }
    });
  }
  for (std::thread& t : ranks) t.join();
}

}  // namespace gpu_test
