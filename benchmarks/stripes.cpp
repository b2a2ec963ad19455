// SPDX-License-Identifier: BSL-1.0
// What long messages gain from several connections where each flow is limited: the kernel is told how fast each of this
// process's connections may send, as a cloud would see to. Run by stripes.sh, which chooses COHORT_TCP_STRIPES.
//   stripes MEGABYTES_PER_SECOND   of one flow; 0: no limit. Prints operation,bytes,microseconds
#include <cohort/cohort.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
using world_type = cohort::communicator<cohort::cpu>;

/// Limits every connection that there is by now.
void limit_flows(std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_storage other{};
    socklen_t length = sizeof other;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &length) != 0 || other.ss_family != AF_INET) continue;
    if (::setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, sizeof bytes_per_second) != 0) {
      throw std::runtime_error("this kernel cannot limit a connection");
    }
  }
}

enum class operation { one_way, exchange, all_reduce };
constexpr const char* names[] = {"one way", "exchange", "all_reduce"};

cohort::task<> once(world_type& world, operation what, std::vector<float>& mine, std::vector<float>& theirs) {
  const int other = 1 - world.rank();
  if (what == operation::all_reduce) {
    co_await world.all_reduce(mine, cohort::sum{});
  } else if (what == operation::exchange) {
    auto op = world.exchange(mine, cohort::to{other}, theirs, cohort::from{other});
    co_await op;
  } else {
    // The answer tells that all of it has come.
    float answer = 0;
    if (world.rank() == 0) {
      co_await world.send(mine, cohort::to{1});
      co_await world.recv(std::span(&answer, 1), cohort::from{1});
    } else {
      co_await world.recv(theirs, cohort::from{0});
      co_await world.send(std::span(&answer, 1), cohort::to{0});
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t limit = argc > 1 ? std::strtoull(argv[1], nullptr, 10) * 1000000 : 0;
  const auto rank_main = [limit](world_type world) -> cohort::task<> {
    constexpr int calls = 5;
    for (const std::size_t mebibytes : {std::size_t{1}, std::size_t{4}, std::size_t{16}}) {
      std::vector<float> mine((mebibytes << 20) / sizeof(float));
      std::vector<float> theirs(mine.size());
      for (const operation what : {operation::one_way, operation::exchange, operation::all_reduce}) {
        for (int i = 0; i < 2; ++i) {  // the first call may open connections
          auto call = once(world, what, mine, theirs);
          co_await call;
          limit_flows(limit);
        }
        std::vector<double> times;
        for (int i = 0; i < calls; ++i) {
          co_await world.barrier();
          const auto start = steady::now();
          auto call = once(world, what, mine, theirs);
          co_await call;
          times.push_back(std::chrono::duration<double, std::micro>(steady::now() - start).count());
        }
        std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
        if (world.rank() == 0) std::printf("%s,%zu,%.1f\n", names[static_cast<int>(what)], mebibytes, times[calls / 2]);
      }
    }
  };
  return cohort::run(rank_main);
}
