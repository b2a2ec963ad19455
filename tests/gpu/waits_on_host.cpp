// SPDX-License-Identifier: BSL-1.0
// How the host waits for what ranks of communicator<nccl> have put on streams, where it must not, and what becomes of a
// wait that nobody wants any more: with NCCL's functions of host_nccl.cpp and CUDA's of host_runtime.cpp, on machines of one
// GPU or none.
#include <cohort/backend/nccl.hpp>
#include <cohort/sync_wait.hpp>

#include "host_nccl.hpp"
#include "nccl_ranks.hpp"
#include "support.hpp"
#include "values.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace cohort;
using namespace std::chrono_literals;
using gpu_test::place;
using gpu_test::throws;

/// Work that a stream stands at until it is told to go on.
class obstacle {
 public:
  explicit obstacle(on here) {
    gpu_test::enqueue_on_host(here.stream, [open = open_] { open->wait(); });
  }
  obstacle(const obstacle&) = delete;
  obstacle& operator=(const obstacle&) = delete;
  ~obstacle() { open_->count_down(); }

 private:
  std::shared_ptr<std::latch> open_ = std::make_shared<std::latch>(1);
};

/// Whether it becomes true while somebody would still wait for it.
bool comes_true(const std::function<bool()>& what) {
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (!what()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// A coroutine that nobody drives: it starts at once, and ends and goes where it is resumed.
struct detached {
  struct promise_type {
    detached get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> frame;
};

// The communicators that are made of one another share a poller, and each may have a thread of its own.
void first_of_several_threads() {
  for (int round = 0; round < 300; ++round) {
    cohort::detail::poller shared(0);
    std::barrier<> together(4);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        together.arrive_and_wait();
        shared.oversee({});
      });
    }
    for (std::thread& t : threads) t.join();
  }
}

// A coroutine that was resumed on the poller's thread may await there, and not block.
detached goes_on(const communicator<nccl>& world, on here, on second, std::shared_ptr<std::promise<void>> over) {
  auto work = std::make_unique<obstacle>(here);
  std::thread later([&] { work.reset(); });
  const auto home = std::this_thread::get_id();
  co_await on_host(world.enqueued(here));
  CHECK(std::this_thread::get_id() != home);
  {
    const obstacle more(second);
    auto waiting = on_host(world.enqueued(second), timeout{10s});
    const char* const why = "this is the thread of the poller";
    CHECK(throws(
        errc::invalid_argument, [&] { waiting.wait(); }, "enqueued on rank 0 of 1", why, "co_await it there"));
    const auto body = [&]() -> task<> { co_await std::move(waiting); };
    CHECK(throws(
        errc::invalid_argument, [&] { sync_wait(body()); }, "enqueued on rank 0 of 1", why));
    CHECK(throws(
        errc::invalid_argument, [&] { (void)world.subgroup(ranks{0}); }, "subgroup on 'world', rank 0 of 1", why));
  }
  const auto also_there = std::this_thread::get_id();
  co_await on_host(world.enqueued(second));
  CHECK(std::this_thread::get_id() == also_there);
  later.join();
  over->set_value();
}
void on_the_pollers_thread(communicator<nccl>& world, on here) {
  const stream second;
  const auto over = std::make_shared<std::promise<void>>();
  (void)goes_on(world, here, on{second}, over);
  CHECK(over->get_future().wait_for(10s) == std::future_status::ready);
}

// Where the queue of a stream is full, the driver makes whoever enqueues wait, the flag as well: the deadline holds all the
// same.
void full_queue(bool with_call) {
  constexpr std::size_t room = 8;
  gpu_test::on_ranks(1, [&](communicator<nccl>& world, on here) {
    device_buffer<float> v(4);
    auto standing = std::make_unique<obstacle>(here);
    std::thread device([&] {
      CHECK(comes_true([&] { return world.failed(); }));
      standing.reset();
    });
    for (std::size_t i = 0; i < room; ++i) gpu_test::enqueue_on_host(here.stream, [] {});
    gpu_test::set_room_of_streams(room);
    std::optional<host_wait> waiting;
    if (with_call) (void)world.all_reduce(v, sum{}, here, timeout{20ms});
    else waiting.emplace(on_host(world.enqueued(here), timeout{20ms}));
    device.join();
    gpu_test::set_room_of_streams(SIZE_MAX);
    const char* const name = with_call ? "all_reduce" : "enqueued";
    CHECK(throws(
        errc::timed_out,
        [&] {
          if (waiting) waiting->wait();
          else (void)world.barrier(here);
        },
        std::string(name) + " on rank 0 of 1", "after 20 ms"));
  });
}

// The flag of a timeout goes on a stream of the rank's own device, whichever is current where the call is made.
void another_device_is_current(communicator<nccl>& world, on here) {
  const place p{world, here};
  auto v = p.filled(std::vector<float>(4, 1.0f));
  {
    const device_scope elsewhere(device{1 - world.rank()});
    (void)world.all_reduce(v, sum{}, here, timeout{30s});
    CHECK(current_device().index == 1 - world.rank());
  }
  p.check(v, std::vector<float>(4, 2.0f), "all_reduce, with another device current");
}

// Who drops a wait waits no more, and its deadline ends nothing.
detached waits_briefly(const communicator<nccl>& world, on here) {
  co_await on_host(world.enqueued(here), timeout{20ms});
}
void dropped(communicator<nccl>& world, on here) {
  {
    const obstacle work(here);
    { const host_wait unwanted = on_host(world.enqueued(here), timeout{20ms}); }
    host_wait moved = on_host(world.enqueued(here), timeout{20ms});
    moved = on_host(world.enqueued(here), timeout{30s});
    waits_briefly(world, here).frame.destroy();
    std::this_thread::sleep_for(60ms);
    CHECK(!world.failed() && !moved.ready());
  }
  on_host(world.enqueued(here)).wait();
  CHECK(!world.failed());
}

// The poller has a deadline to keep while a window ends, which frees the communicator afterwards and not meanwhile.
void window_ends(communicator<nccl>& world, on here) {
  nccl_window<float> window = world.make_window<float>(16);
  if (world.rank() != 0) return;
  auto work = std::make_unique<obstacle>(here);
  std::optional<host_wait> late;
  gpu_test::while_deregistering = [&] {
    late.emplace(on_host(world.enqueued(here), timeout{1ms}));
    std::this_thread::sleep_for(30ms);
  };
  std::thread device([&] {
    CHECK(comes_true([&] { return world.failed(); }));
    work.reset();
  });
  { const nccl_window<float> ends = std::move(window); }
  device.join();
  gpu_test::while_deregistering = nullptr;
  CHECK(throws(
      errc::timed_out, [&] { late->wait(); }, "enqueued on rank 0 of 2", "after 1 ms"));
}

void timeout_of_nothing(communicator<nccl>& world, on here) {
  for (const auto after : {0ns, -5ns}) {
    CHECK(throws(
        errc::invalid_argument, [&] { (void)on_host(world.enqueued(here), timeout{after}); },
        "on_host after enqueued on rank 0",
        "timeout of " + std::to_string(after.count()) + " ns: expected more than zero"));
  }
  on_host(world.enqueued(here)).wait();
  CHECK(!world.failed());
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  first_of_several_threads();
  gpu_test::on_ranks(1, on_the_pollers_thread);
  for (const bool with_call : {false, true}) full_queue(with_call);
  for (const bool blocking : {false, true}) gpu_test::on_ranks(2, another_device_is_current, blocking);
  gpu_test::on_ranks(1, dropped);
  gpu_test::on_ranks(1, timeout_of_nothing);
  gpu_test::on_ranks(2, window_ends);
  return gpu_test::conclude("waits_on_host");
}
