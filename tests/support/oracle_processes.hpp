// SPDX-License-Identifier: BSL-1.0
// Runs a check of the oracle in real processes that talk TCP.
#pragma once

#include "oracle.hpp"
#include "processes.hpp"

#include <cohort/run.hpp>

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oracle {

using remote = cohort::cpu;
#if COHORT_TEST_THREAD_SANITIZED
inline constexpr std::array<int, 2> process_counts{2, 3};  // a hundred times slower, and after something else
#elif COHORT_TEST_SANITIZED
inline constexpr std::array<int, 3> process_counts{2, 3, 5};
#else
inline constexpr std::array<int, 6> process_counts{1, 2, 3, 4, 5, 8};
#endif
// Of int32. The second is longer than 1 MiB: over TCP it is announced, and sent when the receiver has granted it.
inline constexpr std::size_t long_prime = harness::sanitized ? 65537 : 100003;
inline constexpr std::size_t longest_prime = harness::sanitized ? 262147 : 300007;
/// Where blocks are so long: every rank works out what all of them should have.
inline constexpr auto process_counts_of_long =
    std::span(process_counts).first(harness::sanitized ? 2 : process_counts.size());

/// Runs `check(checker<remote>&)` in n processes; each must have checked every algorithm of `kinds`.
template <class Check>
void on_processes(int n, std::initializer_list<operation_kind> kinds, Check check, harness::variables environment = {},
                  const std::function<void(int)>& move_in = {}) {
  CAPTURE(n);
  const auto body = [&](int rank) {
    if (move_in) move_in(rank);
    tally counts;
    auto rank_main = [&](communicator<remote> world) -> task<> {
      harness::expect(world.rank() == rank && world.size() == n, "the rank and the size that the launcher gave");
      ranks_share_memory() = world.calls().state()->window != nullptr;
      const char* const shared = std::getenv("COHORT_SHM");
      const bool over_sockets = shared != nullptr && std::string_view(shared) == "0";
      harness::expect(!(over_sockets && ranks_share_memory()),
                      "no shared memory in a test that is to run over sockets");
      ranks_span_hosts() = world.calls().state()->hosts != nullptr;
      harness::expect(ranks_span_hosts() == static_cast<bool>(move_in), "several hosts where there are several");
      checker<remote> c(world, counts);
      auto work = check(c);
      co_await work;
    };
    const int code = cohort::run(rank_main);
    if (code != 0) return code;  // it has said why
    for (const operation_kind kind : kinds) {
      if (n == 1) break;  // one rank needs none for some operations
      for (const algorithm how : algorithms_of(kind)) harness::expect(counts.of(kind, how) > 0, to_string(how));
    }
    harness::expect(counts.total() > 0, "something to be checked");
    return 0;
  };
  harness::rank_options options;
  options.deadline = std::chrono::minutes(3);  // guards against a hang, on a busy machine too
  options.environment = std::move(environment);
  const auto results = harness::run_ranks(n, body, options);
  REQUIRE(results.size() == static_cast<std::size_t>(n));
  const bool all_right =
      std::all_of(results.begin(), results.end(), [](const harness::rank_result& r) { return r.ok(); });
  CHECK_MESSAGE(all_right, harness::describe(results));
}

/// Every rank of 3 to 8 on one of several hosts: in a row, in turns, and with more on one than on another.
///
/// Calls f(what each rank is to do before it joins, ranks)
template <class F>
void on_hosts(F f) {
  std::vector<std::vector<int>> layouts{{0, 0, 1}};
  if (process_counts.back() > 3) layouts.push_back({0, 1, 1, 0, 2});
  if (!harness::sanitized) layouts.insert(layouts.end(), {{0, 0, 1, 1}, {0, 1, 0, 1, 0, 1}, {0, 0, 0, 0, 1, 1, 1, 1}});
  for (const std::vector<int>& hosts : layouts) {
    std::string layout;
    for (const int h : hosts) layout += std::to_string(h) + " ";
    CAPTURE(layout);
    const auto move_in = [&hosts](int rank) {
      ::setenv("COHORT_HOST_ID", ("host " + std::to_string(hosts[static_cast<std::size_t>(rank)])).c_str(), 1);
      ::setenv("COHORT_SHM", "1", 1);
    };
    f(move_in, static_cast<int>(hosts.size()));
  }
}

/// Whether this machine has ::1; says so where it has not.
[[nodiscard]] inline bool has_ipv6() {
  const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool bound = fd >= 0 && ::bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  if (fd >= 0) ::close(fd);
  if (!bound) MESSAGE("skipped: no socket can be bound to ::1 on this machine");
  return bound;
}

/// Memory that the processes forked from this one share.
class shared_counter {
 public:
  shared_counter()
      : place_(::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(place_ != MAP_FAILED);
    counter_ = new (place_) std::atomic<int>(0);
  }
  shared_counter(const shared_counter&) = delete;
  shared_counter& operator=(const shared_counter&) = delete;
  ~shared_counter() { ::munmap(place_, sizeof(std::atomic<int>)); }
  [[nodiscard]] std::atomic<int>& get() const noexcept { return *counter_; }

 private:
  void* place_;
  std::atomic<int>* counter_ = nullptr;
};

}  // namespace oracle
