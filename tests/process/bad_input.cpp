// SPDX-License-Identifier: BSL-1.0
// What users get wrong: the environment, the address, the number of ranks, the arguments. Each must end at once with a
// sentence that names what was found, on every rank that can know; a refused call harms nothing.
#include "fault_support.hpp"

#include "../support/child_process.hpp"

#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

task<> meet(world_type world) { co_await world.barrier(); }

int run_meeting(int) { return cohort::run(meet); }

harness::rank_options with(harness::variables environment) {
  harness::rank_options options;
  options.environment = std::move(environment);
  return options;
}

/// A socket of the parent that listens on a port of its own and never answers.
class foreign_listener {
 public:
  foreign_listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool listens = fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0 && ::listen(fd_, 16) == 0 &&
                         ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (!listens) throw std::runtime_error("foreign_listener: no socket");
    port_ = std::to_string(ntohs(address.sin_port));
  }
  foreign_listener(const foreign_listener&) = delete;
  foreign_listener& operator=(const foreign_listener&) = delete;
  ~foreign_listener() { ::close(fd_); }
  [[nodiscard]] const std::string& port() const { return port_; }
  [[nodiscard]] int accept() const { return ::accept(fd_, nullptr, nullptr); }

 private:
  int fd_;
  std::string port_{};
};

}  // namespace

TEST_CASE("bad input: an environment that is half set or wrong is refused with exit code 2 and the variable's name") {
  struct wrong {
    harness::variables environment;
    std::vector<std::string> words;
  };
  const wrong all[] = {
      {{{"RANK", std::nullopt}}, {"WORLD_SIZE is set but RANK is not"}},
      {{{"WORLD_SIZE", std::nullopt}}, {"RANK is set but WORLD_SIZE is not"}},
      {{{"WORLD_SIZE", "4"}, {"RANK", "4"}}, {"RANK=4: expected 0..3, because WORLD_SIZE=4"}},
      {{{"WORLD_SIZE", "4"}, {"RANK", "-1"}}, {"RANK=-1: expected 0..3"}},
      {{{"WORLD_SIZE", "4"}, {"RANK", "1x"}}, {"RANK", "1x"}},
      {{{"WORLD_SIZE", "4"}, {"RANK", ""}}, {"RANK"}},
      {{{"WORLD_SIZE", "0"}}, {"WORLD_SIZE", "0"}},
      {{{"WORLD_SIZE", "four"}}, {"WORLD_SIZE", "four"}},
      {{{"WORLD_SIZE", "2"}, {"MASTER_ADDR", std::nullopt}}, {"MASTER_ADDR is not set", "world of 2"}},
      {{{"WORLD_SIZE", "2"}, {"MASTER_PORT", std::nullopt}}, {"MASTER_PORT is not set"}},
      {{{"WORLD_SIZE", "2"}, {"MASTER_PORT", "70000"}}, {"MASTER_PORT", "70000"}},
      {{{"WORLD_SIZE", "2"}, {"MASTER_PORT", "http"}}, {"MASTER_PORT", "http"}},
      {{{"COHORT_PEER_TIMEOUT", "0.01"}}, {"COHORT_PEER_TIMEOUT", "0.2 s"}},
      {{{"COHORT_TIMEOUT", "soon"}}, {"COHORT_TIMEOUT", "soon", "expected seconds"}},
      {{{"COHORT_JOIN_TIMEOUT", "-3"}}, {"COHORT_JOIN_TIMEOUT", "-3"}},
      {{{"COHORT_TCP_STRIPES", "0"}}, {"COHORT_TCP_STRIPES=\"0\": expected auto, or the number", "1 to 32"}},
      {{{"COHORT_SINGLE_COPY", "yes"}}, {"COHORT_SINGLE_COPY=\"yes\": expected 1", "or auto, as is faster"}},
      {{{"COHORT_SINGLE_COPY", ""}}, {"COHORT_SINGLE_COPY=\"\": expected 1"}},
      {{{"COHORT_TCP_STRIPES", "33"}}, {"COHORT_TCP_STRIPES=\"33\": expected auto"}},
      {{{"COHORT_TCP_STRIPES", "-1"}}, {"COHORT_TCP_STRIPES=\"-1\": expected auto"}},
      {{{"COHORT_TCP_STRIPES", "two"}}, {"COHORT_TCP_STRIPES=\"two\": expected auto"}},
      {{{"COHORT_TCP_STRIPES", ""}}, {"COHORT_TCP_STRIPES=\"\": expected auto"}},
  };
  for (const wrong& each : all) {
    const auto ranks = run_ranks(1, run_meeting, with(each.environment));
    INFO(harness::describe(ranks));
    CHECK(ranks[0].exit_code == 2);
    for (const std::string& word : each.words) CHECK(contains(ranks[0].err, word));
  }
}

TEST_CASE("bad input: an algorithm that does not exist is refused") {
  const auto ranks = run_ranks(1, run_meeting, with({{"COHORT_ALGORITHMS", "all_reduce=rng"}}));
  INFO(harness::describe(ranks));
  CHECK(ranks[0].exit_code == 1);
  CHECK(contains(ranks[0].err, "\"rng\" is not an algorithm of all_reduce; these are "));
}

TEST_CASE("bad input: a congestion control that this host does not have is refused") {
  const auto ranks = run_ranks(2, run_meeting, with({{"COHORT_TCP_CONGESTION", "renno"}}));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "congestion control \"renno\": "));
    CHECK(contains(r.err, "; this host has: "));
  }
}

TEST_CASE("bad input: two processes with one rank") {
  const auto ranks = run_ranks(
      3,
      [](int rank) {
        if (rank == 2) ::setenv("RANK", "1", 1);
        return cohort::run(meet);
      },
      with({{"COHORT_JOIN_TIMEOUT", "20"}}));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "rank 1 is claimed twice"));
    CHECK(r.elapsed < 10s);
  }
}

TEST_CASE("bad input: world sizes that differ") {
  const auto ranks = run_ranks(
      2,
      [](int rank) {
        if (rank == 1) ::setenv("WORLD_SIZE", "3", 1);
        return cohort::run(meet);
      },
      with({{"COHORT_JOIN_TIMEOUT", "20"}}));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "world sizes differ"));
    CHECK(r.elapsed < 10s);
  }
}

TEST_CASE("bad input: somebody else listens on the port of rank 0") {
  const foreign_listener foreign;
  const auto ranks = run_ranks(2, run_meeting, with({{"MASTER_PORT", foreign.port()}, {"COHORT_JOIN_TIMEOUT", "2"}}));
  INFO(harness::describe(ranks));
  CHECK(ranks[0].exit_code == 1);
  CHECK(contains(ranks[0].err, "127.0.0.1:" + foreign.port()));
  CHECK(contains(ranks[0].err, "another program listens there"));
  CHECK(ranks[1].exit_code == 1);
  CHECK(contains(ranks[1].err, "has not answered a hello"));
}

TEST_CASE("bad input: what listens there speaks another protocol") {
  const foreign_listener foreign;
  const harness::child_process server([&] {
    for (;;) {
      const int client = foreign.accept();
      const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
      if (client < 0 || ::send(client, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0) return 1;
      char rest[256];
      while (::recv(client, rest, sizeof rest, 0) > 0) continue;
      ::close(client);
    }
  });
  const auto ranks = run_ranks(1, run_meeting, with({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", foreign.port()}, {"COHORT_JOIN_TIMEOUT", "20"}}));
  INFO(harness::describe(ranks));
  CHECK(ranks[0].exit_code == 1);
  CHECK(contains(ranks[0].err, "is not one of cohort: it answers with \"HTTP/1.1\""));
  CHECK(ranks[0].elapsed < 10s);
}

TEST_CASE("bad input: a host that has no address") {
  const auto ranks = run_ranks(2, run_meeting, with({{"MASTER_ADDR", "no-such-host.invalid"}, {"COHORT_JOIN_TIMEOUT", "2"}}));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "cannot resolve host \"no-such-host.invalid\""));
  }
}

TEST_CASE("bad input: nobody listens where rank 0 should be") {
  const auto ranks = run_ranks(1, run_meeting, with({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"COHORT_JOIN_TIMEOUT", "1"}}));
  INFO(harness::describe(ranks));
  CHECK(ranks[0].exit_code == 1);
  CHECK(contains(ranks[0].err, "is rank 0 running, and do MASTER_ADDR and MASTER_PORT name its address?"));
}

TEST_CASE("bad input: a network address without a secret") {
  const auto ranks = run_ranks(2, run_meeting, with({{"MASTER_ADDR", "192.0.2.1"}, {"COHORT_JOIN_TIMEOUT", "2"}}));
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) {
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "without a job secret"));
  }
}

TEST_CASE("bad input: a rank that never comes is named by every one that does") {
  for (const int absent : {1, 3}) {
    const auto ranks = run_ranks(4, [&](int rank) { return rank == absent ? 0 : cohort::run(meet); }, with({{"COHORT_JOIN_TIMEOUT", "2"}}));
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) {
      if (r.rank == absent) continue;
      CHECK(r.exit_code == 1);
      CHECK(contains(r.err, "3/4 joined, missing rank " + std::to_string(absent)));
      CHECK(r.elapsed < 10s);
    }
  }
}

TEST_CASE("bad input: a rank that comes with another secret, or without one") {
  for (const char* other : {"0000000000000000", static_cast<const char*>(nullptr)}) {
    const auto ranks = run_ranks(
        2,
        [&](int rank) {
          if (rank == 1 && other != nullptr) ::setenv("COHORT_SECRET", other, 1);
          if (rank == 1 && other == nullptr) ::unsetenv("COHORT_SECRET");
          return cohort::run(meet);
        },
        with({{"COHORT_SECRET", "0123456789abcdef"}, {"COHORT_JOIN_TIMEOUT", "2"}}));
    INFO(harness::describe(ranks));
    CHECK(ranks[0].exit_code == 1);
    CHECK(contains(ranks[0].err, "1/2 joined, missing rank 1"));
    CHECK(ranks[1].exit_code == 1);
    CHECK(contains(ranks[1].err, other != nullptr ? "it has another secret than this process" : "it has a secret, this process has none"));
    CHECK_FALSE(contains(ranks[1].err, "0123456789abcdef"));
  }
}

namespace {

struct refusal {
  std::string name;
  std::function<operation<>(world_type&)> start;
  errc code;
  std::vector<std::string> words;
};

template <class T>
operation<> without_value(operation<T> op) {
  // The front refused it: there is nothing in flight that this could drop.
  try {
    static_cast<void>(op.wait());
  } catch (...) {
    return operation<>::refused(std::current_exception());
  }
  return operation<>::completed({});
}

/// Calls with two ranks that are refused before anything is sent.
std::vector<refusal> refusals(std::vector<float>& four, std::vector<float>& five, std::vector<float>& eight) {
  using w = world_type;
  constexpr errc wrong = errc::invalid_argument;
  const auto first = std::span(eight).first(4);
  const auto shifted = std::span(eight).subspan(2, 4);
  const std::span<float> null(static_cast<float*>(nullptr), 4);
  static const std::vector<std::size_t> three_counts{1, 2, 3};
  static const std::vector<std::size_t> wrong_counts{3, 4};
  static const std::vector<std::size_t> huge_counts(2, std::numeric_limits<std::size_t>::max() / 2 + 1);
  return {
      {"root too large", [&](w& c) { return c.broadcast(four, root{2}); }, wrong, {"broadcast", "root 2: expected 0..1"}},
      {"root negative", [&](w& c) { return c.reduce(four, sum{}, root{-1}); }, wrong, {"reduce", "root -1: expected 0..1"}},
      {"no such destination", [&](w& c) { return c.send(four, to{2}); }, wrong, {"send", "destination 2: expected 0..1"}},
      {"negative destination", [&](w& c) { return c.send(four, to{-1}); }, wrong, {"destination -1: expected 0..1"}},
      {"no such source", [&](w& c) { return without_value(c.recv(four, from{7})); }, wrong, {"source 7: expected 0..1"}},
      {"negative source", [&](w& c) { return without_value(c.recv(four, from{-1})); }, wrong, {"source -1: expected 0..1"}},
      {"negative tag", [&](w& c) { return c.send(four, to{0}, tag{-5}); }, wrong, {"tag -5: expected 0..2147483647"}},
      {"out too large", [&](w& c) { return c.all_reduce(four, five, sum{}); }, wrong, {"out has 5 elements, expected 4 = the size of in"}},
      {"out too small", [&](w& c) { return c.all_gather(four, five); }, wrong, {"out has 5 elements, expected 8 = 4 x 2 ranks"}},
      {"not divisible", [&](w& c) { return c.reduce_scatter(five, four, sum{}); }, wrong, {"in has 5 elements, not a multiple of the 2 ranks: use reduce_scatter_v"}},
      {"three counts", [&](w& c) { return c.all_gather_v(four, eight, three_counts); }, wrong, {"counts has 3 entries, expected 2"}},
      {"counts and size differ", [&](w& c) { return c.reduce_scatter_v(eight, four, wrong_counts, sum{}); }, wrong, {"7", "8"}},
      {"counts overflow", [&](w& c) { return c.all_gather_v(four, eight, huge_counts); }, wrong, {"larger than memory"}},
      {"null", [=](w& c) { return c.all_reduce(null, sum{}); }, wrong, {"null pointer with 4 elements"}},
      {"null to send", [=](w& c) { return c.send(null, to{0}); }, wrong, {"null pointer with 4 elements"}},
      {"partial overlap", [=](w& c) { return c.all_reduce(first, shifted, sum{}); }, wrong, {"overlap"}},
      {"overlap of an exchange", [=](w& c) { return without_value(c.exchange(first, to{0}, shifted, from{1})); }, wrong, {"overlap"}},
      {"all_to_all onto itself", [&](w& c) { return c.all_to_all(four, four); }, wrong, {"overlap"}},
      {"no time", [&](w& c) { return c.barrier(timeout{0s}); }, wrong, {"timeout of 0 ns: expected more than zero"}},
      {"negative time", [&](w& c) { return c.barrier(timeout{-1s}); }, wrong, {"timeout of -1000000000 ns"}},
      {"moved from",
       [](w& c) {
         world_type taken = std::move(c);
         auto op = c.barrier();
         c = std::move(taken);
         return op;
       },
       errc::closed,
       {"barrier", "moved from"}},
  };
}

}  // namespace

TEST_CASE("bad input: a refused argument names what was found and expected, sends nothing and harms nothing") {
  const auto results = run_ranks(2, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<int> {
      std::vector<float> four(4, 1.0F);
      std::vector<float> five(5, 1.0F);
      std::vector<float> eight(8, 1.0F);
      int bad = 0;
      for (const refusal& each : refusals(four, five, eight)) {
        std::string problem = "no error";
        // Only one rank errs: were a number taken or a byte sent, the others would notice at the next call.
        if (rank == 1) {
          try {
            auto op = each.start(world);
            co_await op;
          } catch (const error& e) {
            problem.clear();
            if (e.condition() != each.code) problem = "another code";
            for (const std::string& word : each.words) {
              if (!contains(e.what(), word)) problem = "no \"" + word + "\"";
            }
            if (!problem.empty()) problem += std::string(" in: ") + e.what();
          }
          if (!problem.empty()) {
            std::printf("%s: %s\n", each.name.c_str(), problem.c_str());
            ++bad;
          }
        }
        const int both = co_await world.all_reduce(rank + 1, sum{});
        harness::expect(both == 3 && !world.failed(), "a world that works after: " + each.name);
      }
      co_return bad;
    };
    return cohort::run(rank_main);
  });
  INFO(harness::describe(results));
  for (const auto& r : results) CHECK(r.ok());
}

TEST_CASE("bad input: a message longer than its buffer") {
  const auto results = run_ranks(2, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      std::vector<float> v(rank == 0 ? 10 : 9, 1.0F);
      if (rank == 0) {
        auto op = world.send(v, to{1}, tag{4});
        if (co_await tell(op)) {
          auto next = world.barrier();
          co_await tell(next);
        }
      } else {
        auto op = world.recv(v, from{0}, tag{4});
        co_await tell(op);
      }
      auto later = world.barrier();
      co_await tell(later);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : results) check_survivor(r, {errc::truncated, {0}, "", {"rank 0 sent 10 elements with tag 4, rank 1 has room for 9"}});
}

TEST_CASE("bad input: a message of another element type") {
  const auto results = run_ranks(2, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      std::vector<float> f(10, 1.0F);
      std::vector<int> i(10);
      if (rank == 0) {
        auto op = world.send(f, to{1});
        if (co_await tell(op)) {
          auto next = world.barrier();
          co_await tell(next);
        }
      } else {
        auto op = world.recv(i, from{0});
        co_await tell(op);
      }
      auto later = world.barrier();
      co_await tell(later);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : results) check_survivor(r, {errc::mismatch, {0}, "", {"rank 0 sent elements of float32 with tag 0, rank 1 receives int32"}});
}
