// SPDX-License-Identifier: BSL-1.0
// adds: your own event loop. The same calls inside an asio::awaitable, on an io_context of yours, beside your timers
// and sockets; every operation completes on the thread that runs it.
#include <cohort/asio.hpp>
#include <cohort/cohort.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

namespace asio = boost::asio;

asio::awaitable<int> average_loss(cohort::communicator<cohort::cpu> world) {
  std::vector<float> grad(1000, static_cast<float>(world.rank()));
  auto averaging = world.all_reduce(grad, cohort::average{});  // in flight while the timer runs

  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::milliseconds(10));
  co_await timer.async_wait(asio::use_awaitable);
  co_await std::move(averaging);

  const double loss = co_await world.all_reduce(1.0 / (world.rank() + 1), cohort::max{});
  std::printf("rank %d: average gradient %g, largest loss %g\n", world.rank(), grad[0], loss);
  const auto expected = static_cast<float>(world.size() - 1) / 2;
  co_return grad == std::vector<float>(1000, expected) && loss == 1.0 ? 0 : 1;
}

int main() {
  asio::io_context loop;
  auto world = cohort::connect<cohort::cpu>(loop);  // the place of this process comes from the environment
  int exit_code = 1;
  const auto report = [&exit_code](std::exception_ptr failure, int result) {
    try {
      if (failure) std::rethrow_exception(failure);
      exit_code = result;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
  };
  asio::co_spawn(loop, average_loss(std::move(world)), report);
  loop.run();  // returns when nothing is left to wait for; an open world waits for messages
  return exit_code;
}
