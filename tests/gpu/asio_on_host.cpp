// SPDX-License-Identifier: BSL-1.0
// Calls on a device, awaited inside asio::awaitable and by other completion tokens: with NCCL's functions of
// host_nccl.cpp and CUDA's of host_runtime.cpp, on machines of one GPU or none.
#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/asio.hpp>

#include "host_nccl.hpp"
#include "host_runtime.hpp"
#include "nccl_ranks.hpp"
#include "support.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace cohort;
using namespace std::chrono_literals;
using gpu_test::place;
using gpu_test::throws;

/// Work that a stream stands at until it is told to go on.
class gate {
 public:
  explicit gate(on here) {
    gpu_test::enqueue_on_host(here.stream, [open = open_] { open->wait(); });
  }
  void open() { open_->count_down(); }

 private:
  std::shared_ptr<std::latch> open_ = std::make_shared<std::latch>(1);
};

void run_in(asio::io_context& io, asio::awaitable<void> body) {
  std::exception_ptr failure;
  asio::co_spawn(io, std::move(body), [&failure](std::exception_ptr why) { failure = why; });
  io.run();
  if (failure) std::rethrow_exception(failure);
}

// The call stands on its stream when it has been awaited; on_host() is when the device is done.
asio::awaitable<void> steps(const place& p) {
  const auto home = std::this_thread::get_id();
  std::vector<float> expected(5, 0.0f);
  for (int r = 0; r < p.world.size(); ++r) {
    for (float& x : expected) x += static_cast<float>(r + 1);
  }
  device_buffer<float> v = p.filled(std::vector<float>(5, static_cast<float>(p.world.rank() + 1)));
  device_buffer<float> first(5);
  device_buffer<float> second(5);
  co_await p.world.all_reduce(v, first, sum{}, p.here);
  CHECK(std::this_thread::get_id() == home);
  const auto op = p.world.all_reduce(v, second, sum{}, p.here);
  co_await on_host(op);
  CHECK(std::this_thread::get_id() == home);
  p.check(first, expected, "all_reduce, awaited in asio::awaitable");
  p.check(second, expected, "all_reduce, awaited on the host in asio::awaitable");
  // Done already.
  auto again = on_host(op);
  again.wait();
  co_await std::move(again);
}

// Timeouts and the cancellation of a wait are exceptions of cohort's; the latter leaves the communicator alone.
asio::awaitable<void> cancelled(const place& p) {
  gate g(p.here);
  asio::cancellation_signal stop;
  auto waiting = on_host(p.world.enqueued(p.here));
  std::exception_ptr why;
  std::atomic<bool> over = false;
  std::move(waiting)(asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e) {
    why = e;
    over = true;
  }));
  asio::steady_timer a_moment(co_await asio::this_coro::executor, 5ms);
  co_await a_moment.async_wait(asio::use_awaitable);
  CHECK(!over);
  stop.emit(asio::cancellation_type::terminal);
  while (!over) {
    a_moment.expires_after(1ms);
    co_await a_moment.async_wait(asio::use_awaitable);
  }
  CHECK(throws(
      errc::cancelled, [&] { std::rethrow_exception(why); }, "on rank " + std::to_string(p.world.rank()),
      "the wait for it was cancelled"));
  g.open();
  co_await on_host(p.world.enqueued(p.here));
  CHECK(!p.world.failed());
}

void by_other_tokens(const place& p) {
  asio::io_context io;
  gate g(p.here);
  std::future<void> on_the_stream = p.world.barrier(p.here)(asio::bind_executor(io, asio::use_future));
  std::future<void> on_the_host = on_host(p.world.enqueued(p.here))(asio::bind_executor(io, asio::use_future));
  // The stream stands at the gate: what stands on it has no need to wait for that.
  std::thread runs([&io] { io.run(); });
  on_the_stream.get();
  CHECK(on_the_host.wait_for(5ms) == std::future_status::timeout);
  g.open();
  on_the_host.get();
  runs.join();
  CHECK(io.stopped());
}

void too_late(communicator<nccl>& world, on here) {
  asio::io_context io;
  gate g(here);
  const auto body = [&]() -> asio::awaitable<void> {
    std::exception_ptr why;
    try {
      co_await on_host(world.enqueued(here), timeout{20ms});
    } catch (...) {
      why = std::current_exception();
    }
    CHECK(throws(
        errc::timed_out, [&] { std::rethrow_exception(why); }, "on rank " + std::to_string(world.rank()),
        "the device has not done it after 20 ms"));
  };
  run_in(io, body());
  g.open();
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int n : {1, 3}) {
    gpu_test::on_ranks(n, [](communicator<nccl>& world, on here) {
      const place p{world, here};
      asio::io_context io;
      run_in(io, steps(p));
      asio::io_context other;
      run_in(other, cancelled(p));
      by_other_tokens(p);
    });
  }
  gpu_test::on_ranks(2, too_late);
  return gpu_test::conclude("asio_on_host");
}
