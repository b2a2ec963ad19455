// SPDX-License-Identifier: BSL-1.0
// Strangers at the doors of a world: idle connections by the dozen, garbage, other protocols, hellos of other jobs, at
// every port that its ranks listen on, while they join and while they work. The job must not notice.
#include "../support/listening_ports.hpp"
#include "fault_support.hpp"

#include <cohort/transport/hello.hpp>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::listening_ports;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

/// Connections that a stranger holds open until it goes.
class stranger {
 public:
  stranger() = default;
  stranger(const stranger&) = delete;
  stranger& operator=(const stranger&) = delete;
  ~stranger() {
    for (const int fd : sockets_) ::close(fd);
  }

  void connect(std::uint16_t port, std::string_view says) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    harness::expect(fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
                    "a connection");
    if (!says.empty()) harness::expect(::send(fd, says.data(), says.size(), MSG_NOSIGNAL) > 0, "to be heard");
    sockets_.push_back(fd);
  }

  /// More idle ones than a rank would ever let wait, and of everything else one.
  void besiege(std::uint16_t port) {
    std::mt19937 random(port);
    std::string garbage(300, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    transport::hello other;
    other.role = transport::connection_role::data;
    other.job = 42;
    other.world_size = 1000000;
    other.rank = -77;
    const auto hello = transport::encode(other);
    const std::string_view hello_text(reinterpret_cast<const char*>(hello.data()), hello.size());
    connect(port, garbage);
    connect(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connect(port, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    connect(port, hello_text);
    connect(port, hello_text.substr(0, 95));
    connect(port, "c");
    for (int i = 0; i < 80; ++i) connect(port, {});
  }

 private:
  std::vector<int> sockets_{};
};

task<> work(world_type& world) {
  for (int i = 0; i < 20; ++i) {
    std::vector<int> v(5000, world.rank() + i);
    co_await world.all_reduce(v, sum{});
    harness::expect(v == std::vector<int>(5000, 3 + 3 * i), "the right sum");
  }
}

}  // namespace

TEST_CASE("strangers at the ports of ranks that have joined and not yet talked to each other") {
  const meeting_point besieged(3);
  const auto ranks = run_ranks(3, [&](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      stranger s;
      const auto ports = listening_ports();
      // For messages, and on rank 0 for heartbeats; the store is closed by now.
      harness::expect(ports.size() == (rank == 0 ? 2U : 1U), "one port, on rank 0 two");
      for (const std::uint16_t port : ports) s.besiege(port);
      besieged.arrive_and_wait();
      auto all = work(world);
      co_await all;
    };
    return cohort::run(rank_main);
  });
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

TEST_CASE("strangers at the ports of rank 0 before anybody else has come") {
  const meeting_point besieged(3);
  const auto ranks = run_ranks(3, [&](int rank) {
    stranger s;
    std::thread besieger;
    if (rank == 0) {
      besieger = std::thread([&] {
        std::set<std::uint16_t> ports;
        while (ports.size() < 3) ports = listening_ports();  // store, messages, heartbeats
        for (const std::uint16_t port : ports) s.besiege(port);
        besieged.arrive_and_wait();
      });
    } else {
      besieged.arrive_and_wait();
    }
    const auto rank_main = [&](world_type world) -> task<> {
      auto all = work(world);
      co_await all;
    };
    const int code = cohort::run(rank_main);
    if (besieger.joinable()) besieger.join();
    return code;
  });
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

TEST_CASE("a rank without descriptors waits for some, and answers then") {
  const meeting_point all_here(2);
  harness::rank_options sockets;
  sockets.environment = {{"COHORT_SHM", "0"}};  // memory that is shared needs none any more
  const auto ranks = run_ranks(2, [&](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      std::vector<int> v(100, 7);
      if (rank == 0) {
        all_here.arrive_and_wait();
        co_await world.send(v, to{1});
        co_return;
      }
      const rlimit few{64, 64};
      harness::expect(::setrlimit(RLIMIT_NOFILE, &few) == 0, "a limit");
      std::vector<int> taken;
      for (int fd = 0; (fd = ::dup(2)) >= 0;) taken.push_back(fd);
      harness::expect(errno == EMFILE, "no descriptor to be left");
      all_here.arrive_and_wait();
      std::fill(v.begin(), v.end(), 0);
      auto op = world.recv(v, from{0});
      const auto began = now_ms();
      // Long enough for the connection to be refused a descriptor several times. A turn must still be a turn.
      while (now_ms() - began < 300) world.poll();
      harness::expect(!op.ready(), "nothing to be received without a descriptor");
      for (const int fd : taken) ::close(fd);
      co_await op;
      harness::expect(v == std::vector<int>(100, 7), "what rank 0 sent");
    };
    return cohort::run(rank_main);
  }, sockets);
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}
