// SPDX-License-Identifier: BSL-1.0
// MPI's own collectives that are given up before every rank has come, and in which MPI goes on when the last one does: parts of
// semantics.cpp. Only without the check do ranks begin them alone.
#pragma once

#include "parts.hpp"

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/frame_pool.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace mpi_test {

/// Memory that was given back by an operation, and belongs to somebody else now.
class reused_memory {
 public:
  reused_memory(const world_type& world, std::size_t buffer_bytes) {
    constexpr int of_a_kind = 4;
    for (int i = 0; i < of_a_kind; ++i) {
      buffers_.emplace_back(world.engine().scratch(), buffer_bytes);
      fill(buffers_.back().data(), buffer_bytes);
    }
    for (std::size_t bytes = 64; bytes <= 4096; bytes += 64) {
      for (int i = 0; i < of_a_kind; ++i) {
        frames_.push_back({cohort::detail::frame_pool::allocate(bytes), bytes});
        fill(static_cast<std::byte*>(frames_.back().data), bytes);
      }
    }
    buffer_bytes_ = buffer_bytes;
  }
  reused_memory(const reused_memory&) = delete;
  reused_memory& operator=(const reused_memory&) = delete;
  ~reused_memory() {
    for (const frame& f : frames_) cohort::detail::frame_pool::release(f.data, f.bytes);
  }

  void expect_unchanged(const char* what) const {
    for (const auto& b : buffers_)
      expect(unchanged(b.data(), buffer_bytes_), std::string(what) + ": no buffer written");
    for (const frame& f : frames_) {
      expect(unchanged(static_cast<const std::byte*>(f.data), f.bytes), std::string(what) + ": no frame written");
    }
  }

 private:
  struct frame {
    void* data;
    std::size_t bytes;
  };
  static constexpr std::byte mark{0x5a};
  static void fill(std::byte* data, std::size_t bytes) { std::fill_n(data, bytes, mark); }
  [[nodiscard]] static bool unchanged(const std::byte* data, std::size_t bytes) {
    return std::all_of(data, data + bytes, [](std::byte b) { return b == mark; });
  }

  std::vector<cohort::detail::borrowed_buffer> buffers_{};
  std::vector<frame> frames_{};
  std::size_t buffer_bytes_ = 0;
};

/// MPI goes on wherever it is called.
inline void let_mpi_go_on() {
  constexpr int turns = 50;
  for (int i = 0; i < turns; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
}

/// `call` is an operation of rank 0's choice of time: it comes when the others have given up.
template <class Call>
task<> comes_when_given_up(const world_type& world, const char* what, std::size_t buffer_bytes, Call call) {
  auto duplicates = world.duplicate();
  auto group = co_await duplicates;
  group.algorithms().override_with(
      "all_gather=native,all_gather_v=native,gather=native,scatter=native,all_reduce=native,"
      "scan=native,exclusive_scan=native,broadcast=native,reduce=native");
  auto before = call(group, cohort::timeout{std::chrono::seconds{20}});  // makes MPI's communicator
  co_await before;
  if (world.rank() == 0) {
    MPI_Barrier(MPI_COMM_WORLD);  // within which nothing is heard of the others
    auto late = call(group, cohort::timeout{std::chrono::milliseconds{100}});
    let_mpi_go_on();
    try {
      co_await late;
    } catch (const cohort::error&) {
      // Others may have begun it, or all have given it up before.
    }
  } else {
    try {
      auto op = call(group, cohort::timeout{std::chrono::milliseconds{100}});
      co_await op;
    } catch (const cohort::error& e) {
      expect(e.condition() == errc::timed_out || e.condition() == errc::aborted,
             std::string("to give up, not ") + e.what());
    }
    const reused_memory mine(world, buffer_bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    let_mpi_go_on();
    mine.expect_unchanged(what);
  }
}

inline task<> comes_late_to_lists(world_type world) {
  if (world.size() < 2) co_return;
  constexpr std::size_t count = 5000;
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<int> mine(count, world.rank());
  std::vector<std::vector<int>> all(ranks, std::vector<int>(count, -1));
  const auto gathers = [&](world_type& group, cohort::timeout t) { return group.all_gather(mine, all, t); };
  auto check = comes_when_given_up(world, "all_gather into a list", ranks * count * sizeof(int), gathers);
  co_await check;
}

inline task<> comes_late_to_values(world_type world) {
  if (world.size() < 2) co_return;
  const auto sums = [](world_type& group, cohort::timeout t) { return group.all_reduce(7, cohort::sum{}, t); };
  auto sum = comes_when_given_up(world, "all_reduce of a value", 64, sums);
  co_await sum;
  const auto scans = [](world_type& group, cohort::timeout t) { return group.scan(7, cohort::sum{}, t); };
  auto scan = comes_when_given_up(world, "scan of a value", 64, scans);
  co_await scan;
  const auto tells = [](world_type& group, cohort::timeout t) { return group.broadcast(7, cohort::root{0}, t); };
  auto tell = comes_when_given_up(world, "broadcast of a value", 64, tells);
  co_await tell;
}

}  // namespace mpi_test
