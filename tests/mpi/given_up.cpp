// SPDX-License-Identifier: BSL-1.0
// What MPI goes on with when nobody waits for it any more: operations that were given up while a rank computed, and the ends of
// processes. Run by mpirun with the names of parts.
#include "parts.hpp"
#include "shared_counter.hpp"

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/frame_pool.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using namespace mpi_test;

namespace {

// --- memory that MPI still writes to

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
void let_mpi_go_on() {
  constexpr int turns = 50;
  for (int i = 0; i < turns; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::this_thread::sleep_for(2ms);
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
  auto before = call(group, cohort::timeout{20s});  // makes MPI's communicator
  co_await before;
  if (world.rank() == 0) {
    MPI_Barrier(MPI_COMM_WORLD);  // within which nothing is heard of the others
    auto late = call(group, cohort::timeout{100ms});
    let_mpi_go_on();
    try {
      co_await late;
    } catch (const cohort::error&) {
      // Others may have begun it, or all have given it up before.
    }
  } else {
    try {
      auto op = call(group, cohort::timeout{100ms});
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

task<> comes_late_to_lists(world_type world) {
  if (world.size() < 2) co_return;
  constexpr std::size_t count = 5000;
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<int> mine(count, world.rank());
  std::vector<std::vector<int>> all(ranks, std::vector<int>(count, -1));
  const auto gathers = [&](world_type& group, cohort::timeout t) { return group.all_gather(mine, all, t); };
  auto check = comes_when_given_up(world, "all_gather into a list", ranks * count * sizeof(int), gathers);
  co_await check;
}

task<> comes_late_to_values(world_type world) {
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

/// A long message that is given up in the middle, as its sender computes: when that goes on, MPI does as well.
task<> stuck_in_the_middle(world_type world) {
  if (world.size() < 2) co_return;
  const oracle::shared_counter step(world);
  auto groups = world.split(cohort::color{world.rank() < 2 ? 0 : 1});
  auto pair = co_await groups;
  if (world.rank() > 1) {
    MPI_Barrier(MPI_COMM_WORLD);
    let_mpi_go_on();
    co_return;
  }
  pair.algorithms().override_with("all_reduce=recursive_doubling");
  constexpr std::size_t count = std::size_t{16} << 20;
  static std::vector<float> v;  // MPI keeps what it is not done with
  v.assign(count, 1.0F);
  if (world.rank() == 1) {
    auto op = pair.all_reduce(v, cohort::sum{});
    const auto until = std::chrono::steady_clock::now() + 15ms;
    while (std::chrono::steady_clock::now() < until) world.poll();
    while (step.get() == 0) std::this_thread::sleep_for(1ms);  // and MPI is not called
    MPI_Barrier(MPI_COMM_WORLD);
    let_mpi_go_on();
    try {
      co_await op;
    } catch (const cohort::error& e) {
      expect(e.condition() == errc::timed_out, "the other's deadline");
    }
    co_return;
  }
  try {
    auto op = pair.all_reduce(v, cohort::sum{}, cohort::timeout{200ms});
    co_await op;
  } catch (const cohort::error& e) {
    expect(e.condition() == errc::timed_out, "the deadline");
  }
  const reused_memory mine(world, count * sizeof(float));
  step.get() = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  let_mpi_go_on();
  mine.expect_unchanged("all_reduce of a long vector");
}

// --- who waits for whom

/// MPI's end of each is waited for a while, but not of each in turn.
task<> sends_to_a_stuck_rank(world_type world) {
  if (world.size() < 2) co_return;
  const oracle::shared_counter step(world);
  constexpr int sends = 5;
  static std::vector<std::vector<char>> v;  // MPI keeps what it is not done with
  v.assign(sends, std::vector<char>(200000, 1));
  if (world.rank() == 0) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<cohort::operation<>> ops;
    for (auto& each : v) ops.push_back(world.send(each, cohort::to{1}, cohort::timeout{100ms}));
    auto check = fails(ops.front(), errc::timed_out, {"send of rank 0 to rank 1"});
    co_await check;
    const auto took = std::chrono::steady_clock::now() - start;
    step.get() = 1;
    expect(took < 7s, "one wait of 2 s for all five");
    co_return;
  }
  while (step.get() == 0) std::this_thread::sleep_for(1ms);
}

/// Rank 1 computes, and holds up what goes to it and nothing else.
task<> held_up_by_another(world_type world) {
  if (world.size() < 3) co_return;
  const oracle::shared_counter step(world);
  std::vector<char> v(15000, 1);  // in parts that MPI may ask about
  std::vector<char> in(v.size());
  if (world.rank() == 0) {
    auto to_busy = world.send(v, cohort::to{1});
    auto to_idle = world.send(v, cohort::to{2}, cohort::timeout{10s});
    co_await to_idle;
    step.get() = 1;
    co_await to_busy;
  } else if (world.rank() == 1) {
    const auto until = std::chrono::steady_clock::now() + 15s;
    while (step.get() == 0 && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(1ms);
    auto op = world.recv(in, cohort::from{0});
    co_await op;
  } else if (world.rank() == 2) {
    auto op = world.recv(in, cohort::from{0});
    co_await op;
  }
  co_await world.barrier();
}

/// Others have formed a communicator with it.
task<> left_without_forming(world_type world) {
  if (world.size() < 2 || world.rank() != 0) co_return;
  auto forming = world.subgroup(cohort::ranks{0, last(world)});
  auto pair = co_await forming;
  auto op = pair.barrier(cohort::timeout{20s});
  auto check = fails(op, errc::peer_lost, {"rank 1 has left the world"});
  co_await check;
}

// --- the ends of processes

/// MPI is its parent's.
task<> child_exits(world_type world) {
  co_await world.barrier();
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);
  expect(child > 0, "a child");
  int status = 0;
  pid_t ended = 0;
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (ended == 0 && std::chrono::steady_clock::now() < until) {
    ended = ::waitpid(child, &status, WNOHANG);
    std::this_thread::sleep_for(1ms);
  }
  if (ended == 0) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  expect(ended == child && status == 0, "the child to exit");
  auto op = world.all_reduce(1, cohort::sum{});
  expect(co_await op == world.size(), "the world to go on");
}

std::optional<world_type> lasting;

/// It is destroyed when MPI has ended.
task<> stays_to_the_end(world_type) {
  lasting.emplace(cohort::connect<cohort::mpi>());
  std::vector<long> v(50000, 1);
  auto op = lasting->all_reduce(v, cohort::sum{});
  co_await op;
  expect(v.back() == lasting->size(), "a sum in the world that stays");
}

const part parts[] = {
    {"comes_late_to_lists", comes_late_to_lists},
    {"comes_late_to_values", comes_late_to_values},
    {"stuck_in_the_middle", stuck_in_the_middle},
    {"sends_to_a_stuck_rank", sends_to_a_stuck_rank},
    {"held_up_by_another", held_up_by_another},
    {"left_without_forming", left_without_forming},
    {"child_exits", child_exits},
    {"stays_to_the_end", stays_to_the_end},
};

}  // namespace

int main(int argc, char** argv) { return mpi_test::run_parts(argc, argv, parts); }
