// SPDX-License-Identifier: BSL-1.0
// Ranks of one host that share memory, where something ends early: an operation whose buffers others reach, a registration that
// nobody used, a window that one rank cannot make, a child that lets go of what its parent has.
#include "../support/processes.hpp"
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/asio.hpp>
#include <cohort/cohort.hpp>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

void check_all(const std::vector<harness::rank_result>& results) {
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}

template <class Body>
void on_two(Body body) {
  check_all(harness::run_ranks(2, [body](int) { return run(body); }));
}

long descriptors() {
  long count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

struct progress {
  std::atomic<int> slow_rank_is{0};   // 1: in the middle of its part of the sum; 2: at its end
  std::atomic<int> other_rank_is{0};  // 1: at its end, with other things in its buffers
};

/// A sum whose functor keeps one rank in the middle of its part until the other has given up.
struct slow_sum {
  progress* how_far;
  bool here;
  int operator()(int a, int b) const {
    if (here && (a < 0 || b < 0)) {
      how_far->slow_rank_is = 1;
      while (how_far->other_rank_is < 1) ::sched_yield();
    }
    return a + b;
  }
};

constexpr std::size_t length = std::size_t{1} << 19;

/// Rank 0 gives up while rank 1 is in the middle; what rank 0 puts into its buffers then stays there, and nobody takes it for
/// what it was.
task<> one_gives_up(communicator<cpu>& world, std::span<int> in, std::span<int> out, progress& how_far) {
  const bool slow = world.rank() == 1;
  std::fill(in.begin(), in.end(), world.rank() + 1);
  std::fill(out.begin(), out.end(), 0);
  if (slow) in[length / 2 + 3000] = -1;
  const slow_sum add{&how_far, slow};
  co_await world.barrier();
  bool failed = false;
  if (slow) {
    try {
      co_await world.all_reduce(in, out, add);
    } catch (const error& e) {
      failed = true;
      harness::expect(e.condition() == errc::timed_out, e.what());
    }
    how_far.slow_rank_is = 2;
    for (std::size_t i = 0; !failed && i < length; ++i) {
      harness::expect(out[i] == 3 || i == length / 2 + 3000, "a sum of what is no more");
    }
    co_return;
  }
  try {
    co_await world.all_reduce(in, out, add, timeout{300ms});
  } catch (const error& e) {
    failed = true;
    harness::expect(e.condition() == errc::timed_out, e.what());
  }
  harness::expect(failed, "an error");
  harness::expect(std::all_of(in.begin(), in.end(), [](int x) { return x == 1; }), "the input as it was");
  std::fill(in.begin(), in.end(), 50);
  std::fill(out.begin(), out.end(), 7);
}

/// Behind it: rank 1 ends its part.
void expect_nothing_written(std::span<const int> in, std::span<const int> out, progress& how_far) {
  how_far.other_rank_is = 1;
  while (how_far.slow_rank_is == 1) ::sched_yield();
  harness::expect(std::all_of(in.begin(), in.end(), [](int x) { return x == 50; }), "an input that nobody else writes");
  harness::expect(std::all_of(out.begin(), out.end(), [](int x) { return x == 7; }),
                  "a result that nobody else writes");
}

task<int> gives_up_buffers(communicator<cpu> world, const faults::shared<progress>& how_far, bool unregisters) {
  std::vector<int> in(length);
  std::vector<int> out(length);
  std::optional<registration> a(world.register_memory(in));
  std::optional<registration> b(world.register_memory(out));
  harness::expect(a->active() && b->active(), "memory that is shared");
  co_await one_gives_up(world, in, out, *how_far);
  if (unregisters) {
    a.reset();
    b.reset();
  }
  if (world.rank() == 0) expect_nothing_written(in, out, *how_far);
  co_return 0;
}

task<int> gives_up_vectors(communicator<cpu> world, const faults::shared<progress>& how_far) {
  // Input and result in one registration.
  auto both = world.make_shared_vector<int>(2 * length);
  const std::span<int> all(both.data(), both.size());
  co_await one_gives_up(world, all.first(length), all.last(length), *how_far);
  if (world.rank() == 0) expect_nothing_written(all.first(length), all.last(length), *how_far);
  co_return 0;
}

/// Who registers: both, or rank 0 only; in operations that do not combine where buffers are.
task<int> registers_in_vain(communicator<cpu> world, bool both) {
  constexpr std::size_t n = std::size_t{1} << 16;
  std::optional<long> before;
  for (int i = 0; i < 40; ++i) {
    {
      std::vector<float> plain(n, 1.0F);
      std::optional<shared_vector<float>> shared;
      if (both || world.rank() == 0) shared.emplace(world.make_shared_vector<float>(n));
      if (both) {
        co_await world.broadcast(*shared, root{0});
      } else if (shared) {
        std::fill(shared->begin(), shared->end(), 1.0F);
        co_await world.all_reduce(*shared, sum{});
      } else {
        co_await world.all_reduce(plain, sum{});
      }
    }
    co_await world.barrier();
    if (i == 4) before = descriptors();
  }
  // Letters may not have been read yet: the last ones, or more where a mailbox has room for few.
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (descriptors() > *before + 4 && std::chrono::steady_clock::now() < until) (void)world.poll();
  harness::expect(descriptors() <= *before + 4, "no descriptor for each buffer that was");
  co_await world.barrier();
  co_return 0;
}

task<int> forks_while_registered(communicator<cpu> world) {
  struct leave_child {};
  std::vector<int> v(std::size_t{1} << 20, 1);
  try {
    const registration r = world.register_memory(v);
    co_await world.all_reduce(v, max{});
    if (world.rank() == 0) {
      const pid_t child = ::fork();
      if (child == 0) throw leave_child{};
      int status = 0;
      ::waitpid(child, &status, 0);
    }
    co_await world.barrier();
    co_await world.all_reduce(v, sum{}, timeout{10s});
    harness::expect(v.front() == 2 && v.back() == 2, "the sum");
  } catch (const leave_child&) {
    std::_Exit(0);
  }
  co_return 0;
}

/// The first that is dropped ends the other, which is dropped before it is resumed with that.
task<int> drops_two(communicator<cpu> world) {
  communicator<cpu> copy = co_await world.duplicate();
  int never = 0;
  if (world.rank() == 0) {
    std::optional<operation<received>> one(copy.recv(std::span(&never, 1), from{1}, tag{1}));
    std::optional<operation<received>> other(copy.recv(std::span(&never, 1), from{1}, tag{2}));
    one.reset();
    other.reset();
  }
  co_await world.barrier();
  co_return 0;
}

/// Rank 0 has memory for messages, and none for its part of the window.
boost::asio::awaitable<int> opens_no_window(communicator<cpu> world) {
  const int other = 1 - world.rank();
  int x = world.rank();
  int y = 0;
  co_await world.exchange(std::span(&x, 1), to{other}, std::span(&y, 1), from{other}, tag{1});
  if (world.rank() == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    harness::expect(::getrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit");
    limit.rlim_cur = 4096;
    harness::expect(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit");
  }
  const auto before = std::chrono::steady_clock::now();
  auto all = world.broadcast(std::span(&x, 1), root{0}, timeout{10s});  // rank 1 writes nothing more
  if (world.rank() == 1) std::this_thread::sleep_for(200ms);            // rank 0 waits for it meanwhile
  co_await std::move(all);
  harness::expect(x == 0, "what rank 0 had");
  // The timer would wake it up too.
  harness::expect(std::chrono::steady_clock::now() - before < 5s, "a word from the other rank");
  co_return 0;
}

}  // namespace

TEST_CASE("registered buffers are a rank's own again when its operation has failed") {
  for (const bool unregisters : {true, false}) {
    CAPTURE(unregisters);
    const faults::shared<progress> how_far;
    on_two([&](communicator<cpu> world) { return gives_up_buffers(std::move(world), how_far, unregisters); });
  }
  const faults::shared<progress> how_far;
  on_two([&how_far](communicator<cpu> world) { return gives_up_vectors(std::move(world), how_far); });
}

TEST_CASE("buffers that were registered and combined by nobody leave nothing behind") {
  for (const bool both : {true, false}) {
    on_two([both](communicator<cpu> world) { return registers_in_vain(std::move(world), both); });
  }
}

TEST_CASE("a forked child that unwinds ends no registration of its parent") { on_two(forks_while_registered); }

TEST_CASE("an operation that is dropped when it has failed, and before it is resumed, is not resumed") {
  on_two(drops_two);
}

TEST_CASE("a rank that cannot make its part of the window is told of what the others say") {
  check_all(harness::run_ranks(2, [](int) {
    boost::asio::io_context io;
    auto code = boost::asio::co_spawn(io, opens_no_window(connect<cpu>(io)), boost::asio::use_future);
    io.run();
    return code.get();
  }));
}
