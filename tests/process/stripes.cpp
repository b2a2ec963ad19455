// SPDX-License-Identifier: BSL-1.0
// Long messages over several connections, between processes: the oracle, messages both ways at once, what is cancelled in
// flight, who dies or leaves meanwhile, a connection that is lost alone, and a peer that sends what it may not.
#include "../support/listening_ports.hpp"
#include "../support/oracle_movements.hpp"
#include "../support/oracle_processes.hpp"
#include "../support/oracle_reduce.hpp"
#include "fault_support.hpp"

#include <cohort/transport/hello.hpp>
#include <cohort/transport/stripes.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace cohort;
using namespace oracle;
using namespace faults;

namespace {

using world_type = communicator<cpu>;

support::variables over_stripes(const char* number) {
  return {{"COHORT_SHM", "0"}, {"COHORT_TCP_STRIPES", number}, {"COHORT_PEER_TIMEOUT", "60"}};
}

support::rank_options options_for(const char* number) {
  support::rank_options options;
  options.environment = over_stripes(number);
  options.deadline = std::chrono::minutes(2);
  return options;
}

/// A connection of this process that carries chunks, by what it alone is told of the kernel's buffers.
struct carrier {
  int fd;
  std::uint64_t sent;
  std::uint64_t received;
};

std::vector<carrier> carriers() {
  std::vector<carrier> found;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_storage other{};
    socklen_t length = sizeof other;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &length) != 0) continue;
    std::uint32_t unsent = 0;
    socklen_t size = sizeof unsent;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &size) != 0 || unsent != transport::longest_chunk)
      continue;
    // tcpi_bytes_acked and tcpi_bytes_received, which the C library's tcp_info lacks.
    std::array<unsigned char, 136> info{};
    size = info.size();
    support::expect(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, info.data(), &size) == 0 && size == info.size(),
                    "a count of bytes");
    carrier c{fd, 0, 0};
    std::memcpy(&c.sent, info.data() + 120, sizeof c.sent);
    std::memcpy(&c.received, info.data() + 128, sizeof c.received);
    found.push_back(c);
  }
  return found;
}

/// That long messages have gone over so many connections to each peer, or more where the kernel gives each its turn.
void expect_carried(std::size_t each, int peers) {
  const std::vector<carrier> all = carriers();
  support::expect(
      all.size() == each * static_cast<std::size_t>(peers),
      std::to_string(each) + " connections for long messages to each peer, not " + std::to_string(all.size()));
  std::size_t used = 0;
  std::uint64_t bytes = 0;
  for (const carrier& c : all) {
    const std::uint64_t both = c.sent + c.received;
    if (both >= transport::shortest_chunk) ++used;
    bytes += both;
  }
  support::expect(used >= 2, "chunks on several of them");
  support::expect(bytes >= transport::shortest_striped, "a message on them");
}

std::vector<std::uint32_t> values(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint32_t> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = (static_cast<std::uint32_t>(i) + seed) * 2654435761U;
  return v;
}

constexpr std::size_t block = 280001;  // of int32: more than a MiB

/// How many stripes, and how many ranks.
using combination = std::pair<const char*, int>;
#if COHORT_TEST_SANITIZED
constexpr std::array<combination, 2> combinations{{{"8", 2}, {"2", 2}}};
#else
constexpr std::array<combination, 4> combinations{{{"2", 2}, {"3", 2}, {"8", 2}, {"3", 3}}};
#endif

task<> movements_of_blocks(checker<remote>& c) {
  auto messages = message_matrix<std::int32_t>(c, {block});
  co_await messages;
  auto broadcasts = broadcast_matrix<std::int32_t>(c, {block * static_cast<std::size_t>(c.size())}, {c.size() - 1});
  co_await broadcasts;
  auto scatters = scatter_matrix<std::int32_t>(c, {block}, {0}, block);
  co_await scatters;
  auto gathers = gather_matrix<std::int32_t>(c, {block}, {c.size() - 1}, block);
  co_await gathers;
  auto all_gathers = all_gather_matrix<std::int32_t>(c, {block}, block);
  co_await all_gathers;
  auto all_to_alls = all_to_all_matrix<std::int32_t>(c, {block}, block);
  co_await all_to_alls;
}

task<> reductions_of_blocks(checker<remote>& c) {
  const std::size_t all = block * static_cast<std::size_t>(c.size());
  auto everywhere = all_reduce_matrix<std::int32_t, cohort::sum>(c, {all});
  co_await everywhere;
  // 16 bytes an element, and an order that matters.
  auto ordered = all_reduce_matrix<matrix2, multiply>(c, {all / 4});
  co_await ordered;
  auto scattered = reduce_scatter_matrix<float, cohort::sum>(c, {block}, {});
  co_await scattered;
}

/// Several at once in both directions, of lengths on either side of what is striped, under one tag: they arrive in order.
task<> many_at_once(world_type& world) {
  const std::size_t lengths[] = {300000, 7, 262144, 1000003, 0, 262143, 70000, 500009};
  const int other = 1 - world.rank();
  for (std::uint32_t round = 0; round < 3; ++round) {
    std::vector<std::vector<std::uint32_t>> out;
    std::vector<std::vector<std::uint32_t>> in;
    for (const std::size_t n : lengths) {
      const auto number = static_cast<std::uint32_t>(out.size());
      out.push_back(values(n, 1000 * round + 10 * number + static_cast<std::uint32_t>(world.rank())));
      in.emplace_back(n);
    }
    std::vector<operation<received>> receives;
    std::vector<operation<>> sends;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (round % 2 == 0) receives.push_back(world.recv(in[i], from{other}, tag{5}));
      sends.push_back(world.send(out[i], to{other}, tag{5}));
    }
    for (std::size_t i = receives.size(); i < in.size(); ++i)
      receives.push_back(world.recv(in[i], from{other}, tag{5}));
    for (auto& r : receives) co_await r;
    for (auto& s : sends) co_await s;
    for (std::uint32_t i = 0; i < in.size(); ++i) {
      support::expect(in[i] == values(lengths[i], 1000 * round + 10 * i + static_cast<std::uint32_t>(other)),
                      "what was sent");
    }
  }
}

task<> exchange_long(world_type& world, std::uint32_t seed) {
  const auto mine = values(2000003, seed + static_cast<std::uint32_t>(world.rank()));
  std::vector<std::uint32_t> theirs(mine.size());
  const int other = 1 - world.rank();
  auto op = world.exchange(mine, to{other}, theirs, from{other});
  co_await op;
  support::expect(theirs == values(mine.size(), seed + static_cast<std::uint32_t>(other)), "what the other sent");
}

void expect_all_well(const std::vector<support::rank_result>& ranks) {
  INFO(support::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

/// Says what a rank of this job says first, and what comes then. Any connection that is let in stays open.
class impostor {
 public:
  impostor(const launch_info& job, int as, int of, std::uint32_t lane, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    transport::hello h;
    h.role = transport::connection_role::data;
    h.job = transport::job_id(job.run_id);
    h.epoch = job.epoch;
    h.world_size = job.world_size;
    h.rank = as;
    h.target = of;
    h.lane = lane;
    const transport::hello_bytes bytes = transport::sealed(h, job.secret);
    support::expect(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                        ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
                    "to be heard");
  }
  impostor(const impostor&) = delete;
  impostor& operator=(const impostor&) = delete;
  ~impostor() { ::close(fd_); }

  /// Moves the world until the answer is here.
  [[nodiscard]] transport::hello_verdict answer(world_type& world) const {
    transport::hello_bytes bytes{};
    std::size_t got = 0;
    while (got < bytes.size()) {
      world.poll();
      const ssize_t n = ::recv(fd_, bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
      support::expect(n > 0 || (n < 0 && errno == EAGAIN), "an answer");
      if (n > 0) got += static_cast<std::size_t>(n);
    }
    const auto reply = transport::decode_reply(bytes);
    support::expect(reply.has_value(), "an answer that can be read");
    return reply->verdict;
  }
  void say(const transport::chunk& c) const {
    const auto bytes = c.encode();
    support::expect(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()),
                    "to be heard");
  }

 private:
  int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

bool encrypted() { return std::getenv("COHORT_TLS_KEY") != nullptr; }

}  // namespace

TEST_CASE("stripes: the oracle, what moves blocks") {
  for (const auto& [number, n] : combinations) {
    CAPTURE(number);
    const auto check = [&](checker<remote>& c) -> task<> {
      auto all = movements_of_blocks(c);
      co_await all;
      expect_carried(static_cast<std::size_t>(std::atoi(number)), n - 1);
    };
    on_processes(n, {operation_kind::broadcast, operation_kind::all_gather, operation_kind::all_to_all}, check,
                 over_stripes(number));
  }
}

TEST_CASE("stripes: the oracle, what is combined while it arrives") {
  for (const auto& [number, n] : combinations) {
    CAPTURE(number);
    const auto check = [&](checker<remote>& c) -> task<> {
      auto all = reductions_of_blocks(c);
      co_await all;
      expect_carried(static_cast<std::size_t>(std::atoi(number)), n - 1);
    };
    on_processes(n, {operation_kind::all_reduce, operation_kind::reduce_scatter}, check, over_stripes(number));
  }
}

TEST_CASE("stripes: several messages at once, both ways, the short ones between them in order") {
  for (const char* const number : {"2", "3", "8"}) {
    expect_all_well(support::run_ranks(
        2,
        [number](int) {
          const auto rank_main = [number](world_type world) -> task<> {
            auto all = many_at_once(world);
            co_await all;
            expect_carried(static_cast<std::size_t>(std::atoi(number)), 1);
          };
          return cohort::run(rank_main);
        },
        options_for(number)));
  }
}

TEST_CASE("stripes: ranks that were given different numbers use the larger one") {
  expect_all_well(support::run_ranks(
      2,
      [](int rank) {
        if (rank == 1) ::setenv("COHORT_TCP_STRIPES", "1", 1);
        const auto rank_main = [](world_type world) -> task<> {
          auto both = exchange_long(world, 4);
          co_await both;
          auto again = exchange_long(world, 5);
          co_await again;
          expect_carried(3, 1);
        };
        return cohort::run(rank_main);
      },
      options_for("3")));
}

TEST_CASE("stripes: on one host there are none unless they are asked for") {
  for (const char* const number : {"auto", "1"}) {
    expect_all_well(support::run_ranks(
        2,
        [](int) {
          const auto rank_main = [](world_type world) -> task<> {
            auto both = exchange_long(world, 1);
            co_await both;
            support::expect(carriers().empty(), "one connection");
          };
          return cohort::run(rank_main);
        },
        options_for(number)));
  }
}

TEST_CASE("stripes: a rank that leaves behind its message") {
  for (int round = 0; round < 5; ++round) {
    expect_all_well(support::run_ranks(
        2,
        [](int) {
          const auto rank_main = [](world_type world) -> task<> {
            auto v = values(world.rank() == 0 ? 3000017 : 0, 9);
            if (world.rank() == 0) {
              co_await world.send(v, to{1});
              co_return;
            }
            co_await world.recv(growing(v), from{0});
            support::expect(v == values(3000017, 9), "what the one who left had sent");
          };
          return cohort::run(rank_main);
        },
        options_for("3")));
  }
}

TEST_CASE("stripes: a message that is dropped in flight, by either side, disturbs no other") {
  for (const int dropper : {0, 1}) {
    for (const int turns : {1, 20, 80}) {
      CAPTURE(dropper);
      CAPTURE(turns);
      const auto ranks = support::run_ranks(
          2,
          [&](int rank) {
            const auto rank_main = [&](world_type world) -> task<> {
              auto before = exchange_long(world, 1);
              co_await before;
              auto doomed = co_await world.duplicate();
              {
                auto v = std::make_unique<std::vector<std::uint32_t>>(6000011, 3U);
                if (rank == dropper) {
                  // With some of its chunks on the way, or none.
                  const auto drop = [&](const auto& op) {
                    for (int i = 0; i < turns && !op.ready(); ++i) world.poll();
                  };
                  if (rank == 0) drop(doomed.send(*v, to{1}));
                  else drop(doomed.recv(*v, from{0}));
                } else if (rank == 0) {
                  auto op = doomed.send(*v, to{1});
                  co_await tell(op);
                } else {
                  auto op = doomed.recv(*v, from{0});
                  co_await tell(op);
                }
              }
              // Its memory is gone; the same connections go on.
              for (std::uint32_t i = 2; i < 5; ++i) {
                auto after = exchange_long(world, i);
                co_await after;
              }
              expect_carried(3, 1);
            };
            return cohort::run(rank_main);
          },
          options_for("3"));
      INFO(support::describe(ranks));
      for (const auto& r : ranks) CHECK(r.exit_code == 0);
      const auto errors = errors_of(ranks[static_cast<std::size_t>(1 - dropper)]);
      // It may be over before anything is dropped, but not at once.
      if (turns == 1 || !errors.empty()) {
        REQUIRE(errors.size() == 1);
        CHECK(errors[0].code == errc::aborted);
        CHECK(errors[0].peer == dropper);
      }
    }
  }
}

TEST_CASE("stripes: a message that is given up after its time disturbs no other") {
  const meeting_point given_up(2);
  const auto ranks = support::run_ranks(
      2,
      [&](int rank) {
        const auto rank_main = [&](world_type world) -> task<> {
          auto before = exchange_long(world, 1);
          co_await before;
          auto doomed = co_await world.duplicate();
          {
            std::vector<std::uint32_t> v(20000003, rank == 0 ? 3U : 0U);
            if (rank == 0) {
              auto op = doomed.send(v, to{1}, timeout{std::chrono::milliseconds{300}});
              co_await tell(op);
              given_up.arrive_and_wait();
            } else {
              // It asks for the message, takes some of it and then nothing for as long as its sender has patience.
              auto op = doomed.recv(v, from{0});
              while (v.front() == 0) world.poll();
              given_up.arrive_and_wait();
              co_await tell(op);
            }
          }
          auto after = exchange_long(world, 2);
          co_await after;
        };
        return cohort::run(rank_main);
      },
      options_for("3"));
  INFO(support::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 0);
    const auto errors = errors_of(r);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].code == errc::timed_out);
  }
}

TEST_CASE("stripes: a rank is killed in the middle of long messages") {
  for (int victim = 0; victim < 2; ++victim) {
    const meeting_point all_here(2);
    const auto ranks = support::run_ranks(
        2,
        [&](int rank) {
          const auto rank_main = [&](world_type world) -> task<> {
            auto before = exchange_long(world, 1);
            co_await before;
            all_here.arrive_and_wait();
            std::vector<float> v(std::size_t{1} << 24, 1.0F);
            if (rank == victim) {
              const auto op = world.all_reduce(v, max{});
              for (int i = 0; i < 20; ++i) world.poll();
              say("dying");
              std::raise(SIGKILL);
            }
            for (bool fine = true; fine;) {
              auto op = world.all_reduce(v, max{});
              fine = co_await tell(op);
            }
            auto later = world.barrier();
            co_await tell(later);
          };
          return cohort::run(rank_main);
        },
        options_for("3"));
    check_survivors(ranks, {victim}, {errc::peer_lost, {victim}, "all_reduce", {"died"}});
    // Long before the peer timeout of a minute.
    CHECK(slowest_ms(ranks, victim, "dying") < 20000);
  }
}

TEST_CASE("stripes: a rank that has no descriptors left for them says so") {
  const auto ranks = support::run_ranks(
      2,
      [](int rank) {
        const auto rank_main = [rank](world_type world) -> task<> {
          co_await world.barrier();
          std::vector<float> v(std::size_t{1} << 20, 1.0F);
          std::vector<int> taken;
          if (rank == 0) {
            const rlimit few{64, 64};
            support::expect(::setrlimit(RLIMIT_NOFILE, &few) == 0, "a limit");
            for (int fd = 0; (fd = ::dup(2)) >= 0;) taken.push_back(fd);
            auto op = world.send(v, to{1});
            co_await tell(op);
          } else {
            auto op = world.recv(v, from{0});
            co_await tell(op);
          }
          auto later = world.barrier();
          co_await tell(later);
        };
        return cohort::run(rank_main);
      },
      options_for("3"));
  check_survivors(ranks, {},
                  {errc::peer_lost,
                   {1},
                   "",
                   {"rank 0 cannot open stripe ", " of 3 of its connection to rank 1", "Too many open files"}});
}

TEST_CASE("stripes: one connection that is lost alone is one error on either side") {
  const meeting_point ready(2);
  const auto ranks = support::run_ranks(
      2,
      [&](int rank) {
        const auto rank_main = [&](world_type world) -> task<> {
          auto before = exchange_long(world, 1);
          co_await before;
          ready.arrive_and_wait();
          if (rank == 1) {
            const auto all = carriers();
            support::expect(all.size() == 3, "three connections");
            support::expect(::shutdown(all[1].fd, SHUT_RDWR) == 0, "one to be lost");
          }
          std::vector<float> v(std::size_t{1} << 20, 1.0F);
          for (bool fine = true; fine;) {
            auto op = world.all_reduce(v, max{});
            fine = co_await tell(op);
          }
          auto later = world.barrier();
          co_await tell(later);
        };
        return cohort::run(rank_main);
      },
      options_for("3"));
  check_survivors(ranks, {}, {errc::peer_lost, {0, 1}, "all_reduce", {"was lost while", "over one of its stripes"}});
}

TEST_CASE("stripes: a peer that sends a chunk that was not asked for is one error that says so") {
  if (encrypted()) {
    MESSAGE("skipped: the impostor has no certificate; process/tls_wire has what becomes of such");
    return;
  }
  const meeting_point ready(2);
  const auto ranks = support::run_ranks(
      2,
      [&](int rank) {
        const auto rank_main = [&](world_type world) -> task<> {
          auto before = exchange_long(world, 1);
          co_await before;
          ready.arrive_and_wait();
          if (rank == 0) {
            const launch_info job = options_from_environment().launch;
            for (const std::uint16_t port : support::listening_ports()) {
              // What is no stripe is refused, and so are those that are there.
              const impostor too_high(job, 1, 0, 33, port);
              const auto refused = too_high.answer(world);
              if (refused.field == transport::hello_field::role) continue;  // the port of the heartbeats
              support::expect(refused == transport::hello_verdict{transport::hello_field::lane, 32, 33},
                              "no stripe 33");
              const impostor twice(job, 1, 0, 2, port);
              support::expect(twice.answer(world).field == transport::hello_field::capacity, "stripe 2 to be taken");
              const impostor another(job, 1, 0, 9, port);
              support::expect(another.answer(world).accepted(), "room for stripe 9");
              another.say({std::uint64_t{1} << 63 | 12345, 0, transport::longest_chunk});
              while (!world.failed()) world.poll();
            }
          }
          // The other one waits for a rank that finds its connection broken.
          auto first = world.barrier();
          co_await tell(first);
          auto later = world.barrier();
          co_await tell(later);
        };
        return cohort::run(rank_main);
      },
      options_for("3"));
  INFO(support::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 0);
    const auto errors = errors_of(r);
    REQUIRE(errors.size() == 2);
    CHECK(errors[0].code == errc::peer_lost);
    CHECK(contains(errors[0].text, "was lost while reading a chunk of a message that was not asked for"));
  }
}
