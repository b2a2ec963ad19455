// SPDX-License-Identifier: BSL-1.0
// Ranks that end their part too early: by a return, an exception, a dropped operation, a stop request, a functor that
// throws. The others get one error that says which rank and how; and what was sent in good order before still arrives.
#include "fault_support.hpp"

#include <csignal>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace faults;
using namespace std::chrono_literals;
using harness::run_ranks;

namespace {

using world_type = communicator<cpu>;

constexpr std::int64_t bound_ms = 5000;

template <class T>
task<> tell_and_call_again(world_type& world, operation<T>& op) {
  const bool fine = co_await tell(op);
  if (fine) say("no error");
  auto later = world.barrier();
  co_await tell(later);
}

enum class waiting_for : unsigned char { its_message, any_message, its_receive };

struct ways {
  const char* name;
  std::size_t count;
};

}  // namespace

TEST_CASE("a rank returns early while the others are in a collective") {
  for (const int leaver : {0, 2}) {
    CAPTURE(leaver);
    const auto ranks = run_ranks(3, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        if (rank == leaver) {
          say("leaving");
          co_return;
        }
        std::vector<float> v(100, 1.0F);
        auto op = world.all_reduce(v, sum{});
        co_await tell_and_call_again(world, op);
      };
      return cohort::run(rank_main);
    });
    CHECK(ranks[static_cast<std::size_t>(leaver)].exit_code == 0);
    check_survivors(
        ranks, {leaver},
        {errc::peer_lost, {leaver}, "all_reduce", {"exited early", "left the world", "last called barrier() #0"}});
    CHECK(slowest_ms(ranks, leaver, "leaving") < bound_ms);
  }
}

TEST_CASE("a rank returns early while another waits for a message from it") {
  for (const bool connected : {false, true}) {
    for (const int leaver : {0, 1}) {
      CAPTURE(connected);
      CAPTURE(leaver);
      const auto ranks = run_ranks(2, [&](int rank) {
        const auto rank_main = [&](world_type world) -> task<> {
          if (connected) co_await world.barrier();
          if (rank == leaver) {
            say("leaving");
            co_return;
          }
          int value = 0;
          auto op = world.recv(std::span(&value, 1), from{leaver});
          co_await tell_and_call_again(world, op);
        };
        return cohort::run(rank_main);
      });
      check_survivors(ranks, {leaver}, {errc::peer_lost, {leaver}, "receive", {"has left the world"}});
      CHECK(slowest_ms(ranks, leaver, "leaving") < bound_ms);
    }
  }
}

TEST_CASE("a rank returns early while another sends it what nobody will receive") {
  for (const bool connected : {false, true}) {
    CAPTURE(connected);
    const auto ranks = run_ranks(2, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        if (connected) co_await world.barrier();
        if (rank == 1) {
          say("leaving");
          co_return;
        }
        const std::vector<float> long_message(1 << 20, 1.0F);
        auto op = world.send(long_message, to{1});
        co_await tell_and_call_again(world, op);
      };
      return cohort::run(rank_main);
    });
    check_survivors(ranks, {1}, {errc::peer_lost, {1}, "send", {"has left the world"}});
    CHECK(slowest_ms(ranks, 1, "leaving") < bound_ms);
  }
}

TEST_CASE("a rank destroys its communicator while the other waits there: both go on in the world") {
  const auto rank_main = [](world_type world, waiting_for what, bool already) -> task<> {
    auto forming = world.duplicate(named{"copy"});
    std::optional<world_type> copy(co_await forming);
    std::vector<int> v(std::size_t{1} << 20, world.rank());
    if ((world.rank() == 0) == already) std::this_thread::sleep_for(100ms);
    if (world.rank() == 1) {
      auto last = copy->send(std::span(v).first(1), to{0}, tag{3});
      co_await last;
      copy.reset();
      say("leaving");
    } else {
      // What was sent before arrives.
      auto came = copy->recv(std::span(v).first(1), from{1}, tag{3});
      co_await came;
      if (v.front() == 1) say("came");
      if (what == waiting_for::its_receive) {
        auto op = copy->send(v, to{1});
        co_await tell(op);
      } else if (what == waiting_for::its_message) {
        auto op = copy->recv(v, from{1});
        co_await tell(op);
      } else {
        auto op = copy->recv(v, from_any);
        co_await tell(op);
      }
    }
    auto later = world.all_reduce(1, sum{});
    if (co_await later == 2) say("goes on");
  };
  for (const char* const memory : {"1", "0"}) {
    harness::rank_options options;
    options.environment = {{"COHORT_SHM", memory}};
    for (const waiting_for what : {waiting_for::its_message, waiting_for::any_message, waiting_for::its_receive}) {
      for (const bool already : {false, true}) {
        CAPTURE(memory);
        CAPTURE(static_cast<int>(what));
        CAPTURE(already);
        const auto ranks = run_ranks(
            2,
            [&](int) {
              return cohort::run([&](world_type world) { return rank_main(std::move(world), what, already); });
            },
            options);
        INFO(harness::describe(ranks));
        for (const auto& r : ranks) CHECK((r.ok() && contains(r.out, "goes on")));
        CHECK(contains(ranks[0].out, "came"));
        const auto told = errors_of(ranks[0]);
        REQUIRE(told.size() == 1);
        CHECK(told[0].code == errc::peer_lost);
        CHECK(contains(told[0].text, " has left 'copy'"));
        if (what != waiting_for::any_message) CHECK(told[0].peer == 1);
        CHECK(slowest_ms(ranks, 1, "leaving") < bound_ms);
      }
    }
  }
}

TEST_CASE("a rank destroys its communicator without a call on it, and the other comes to a collective there") {
  for (const char* const memory : {"1", "0"}) {
    CAPTURE(memory);
    harness::rank_options options;
    options.environment = {{"COHORT_SHM", memory}};
    const auto rank_main = [](world_type world) -> task<> {
      auto forming = world.duplicate(named{"copy"});
      std::optional<world_type> copy(co_await forming);
      if (world.rank() == 1) {
        copy.reset();
        say("leaving");
      } else {
        auto op = copy->barrier(cohort::timeout{20s});
        co_await tell(op);
      }
      auto later = world.all_reduce(1, sum{});
      if (co_await later == 2) say("goes on");
    };
    const auto ranks = run_ranks(
        2, [&](int) { return cohort::run(rank_main); }, options);
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) CHECK((r.ok() && contains(r.out, "goes on")));
    const auto told = errors_of(ranks[0]);
    REQUIRE(told.size() == 1);
    CHECK(told[0].code == errc::peer_lost);
    CHECK(told[0].peer == 1);
    CHECK(contains(told[0].text, "world rank 1"));
    CHECK(contains(told[0].text, "it has not called anything yet and destroyed this communicator"));
    CHECK(slowest_ms(ranks, 1, "leaving") < bound_ms);
  }
}

TEST_CASE("what a rank sent before it returned arrives, however late it is asked for") {
  for (const std::size_t count : {std::size_t{1}, std::size_t{60000}, std::size_t{3} << 20}) {
    CAPTURE(count);
    const auto ranks = run_ranks(3, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        std::vector<float> message(count, static_cast<float>(rank));
        if (rank == 2) {
          // The long ones are in flight when the rank has nothing else to do.
          auto a = world.send(message, to{0}, tag{1});
          auto b = world.send(message, to{1}, tag{1});
          co_await a;
          co_await b;
          co_return;
        }
        // Rank 2 may be gone by now, if it could.
        for (int i = 0; i < 1000; ++i) world.poll();
        const auto got = co_await world.recv(message, from{2}, any_tag);
        harness::expect(got == received{2, 1, count} && message == std::vector<float>(count, 2.0F), "what rank 2 sent");
      };
      return cohort::run(rank_main);
    });
    INFO(harness::describe(ranks));
    for (const auto& r : ranks) CHECK(r.ok());
  }
}

TEST_CASE("an exception leaves one rank: the others are told which, and what it said") {
  for (const int thrower : {0, 2}) {
    CAPTURE(thrower);
    const meeting_point all_here(3);
    const auto ranks = run_ranks(3, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        if (rank == thrower) {
          say("leaving");
          throw std::runtime_error("no bread in the house");
        }
        std::vector<float> v(100, 1.0F);
        auto op = world.all_reduce(v, sum{});
        co_await tell_and_call_again(world, op);
      };
      return cohort::run(rank_main);
    });
    const auto& r = ranks[static_cast<std::size_t>(thrower)];
    CHECK(r.exit_code == 1);
    CHECK(contains(r.err, "no bread in the house"));
    check_survivors(ranks, {thrower},
                    {errc::aborted, {thrower}, "all_reduce", {"ended with an exception: no bread in the house"}});
    CHECK(slowest_ms(ranks, thrower, "leaving") < bound_ms);
  }
}

TEST_CASE("an operation is dropped in flight") {
  for (const ways& how : {ways{"short", 100}, ways{"long", std::size_t{1} << 20}}) {
    CAPTURE(std::string(how.name));
    const meeting_point all_here(3);
    const meeting_point dropped(2);
    const bool is_long = how.count > 100;
    const auto ranks = run_ranks(3, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        std::vector<float> v(how.count, 1.0F);
        // Of a long one only two ranks are in it: however long a turn takes, it is not complete when it is dropped.
        if (is_long && rank == 2) dropped.arrive_and_wait();
        if (rank == 1) {
          bool in_flight = false;
          {
            const auto op = world.all_reduce(v, sum{});
            for (int i = 0; i < 5; ++i) world.poll();
            say("leaving");
            in_flight = !op.ready();
          }
          if (is_long) dropped.arrive_and_wait();
          harness::expect(in_flight || !is_long, "a long operation to be in flight");
          std::fill(v.begin(), v.end(), 2.0F);  // it is the caller's again: ASan and TSan see who else writes
          auto later = world.barrier();
          co_await tell(later);
          co_return;
        }
        // The dropped one may have been complete on its rank for short vectors: its fellows then fail in the next call.
        for (bool fine = true; fine;) {
          auto op = world.all_reduce(v, sum{});
          fine = co_await tell(op);
        }
        auto later = world.barrier();
        co_await tell(later);
      };
      return cohort::run(rank_main);
    });
    INFO(harness::describe(ranks));
    const auto mine = errors_of(ranks[1]);
    REQUIRE(mine.size() == 1);
    if (mine[0].code == errc::aborted && contains(mine[0].text, "dropped")) {
      CHECK(contains(mine[0].text, "rank 1 dropped all_reduce #1 before it was complete"));
      check_survivors(ranks, {1},
                      {errc::aborted, {1}, "all_reduce", {"rank 1 dropped all_reduce #1 before it was complete"}});
    } else {
      // Complete before it was dropped: then rank 1 disagrees with the others about what comes next.
      CHECK(how.count == 100);
      check_survivors(ranks, {1}, {errc::mismatch, {}, "all_reduce", {"rank 1 called barrier"}});
    }
    CHECK(slowest_ms(ranks, 1, "leaving") < bound_ms);
  }
}

TEST_CASE("a communicator fails on a rank that has formed it before another one has") {
  const auto ranks = run_ranks(2, [](int rank) {
    const auto rank_main = [rank](world_type world) -> task<> {
      auto forming = world.duplicate();
      // Its part of forming it has been sent: the other needs no more of this rank.
      if (rank == 0) std::this_thread::sleep_for(300ms);
      const world_type copy = co_await forming;
      std::vector<float> v(100);
      if (rank == 1) {
        const auto dropped = copy.recv(v, from{0});
      } else {
        auto op = copy.recv(v, from{1}, cohort::timeout{10s});
        co_await tell(op);
      }
      co_await world.barrier();
    };
    return cohort::run(rank_main);
  });
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
  const auto told = errors_of(ranks[0]);
  REQUIRE(told.size() == 1);
  CHECK(told[0].code == errc::aborted);
  CHECK(contains(told[0].text, "rank 1 dropped receive before it was complete"));
}

TEST_CASE("a stop request from another thread cancels an operation in flight") {
  const meeting_point all_here(3);
  const auto ranks = run_ranks(3, [&](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      co_await world.barrier();
      all_here.arrive_and_wait();
      std::vector<float> v(100, 1.0F);
      if (rank == 1) {
        std::stop_source source;
        auto op = world.all_reduce(v, sum{}, stop{source.get_token()});
        // Rank 0 never comes, so the operation cannot complete before the request.
        const std::jthread other([&] { source.request_stop(); });
        co_await tell_and_call_again(world, op);
        co_return;
      }
      if (rank == 0) {
        int value = 0;
        auto op = world.recv(std::span(&value, 1), from{2});
        co_await tell_and_call_again(world, op);
        co_return;
      }
      auto op = world.all_reduce(v, sum{});
      co_await tell_and_call_again(world, op);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : ranks)
    check_survivor(r,
                   {errc::cancelled, {1}, r.rank == 0 ? "receive" : "all_reduce", {"rank 1 cancelled all_reduce #1"}});
}

TEST_CASE("a stop request that was made before the call cancels it as well") {
  const meeting_point all_here(2);
  const auto ranks = run_ranks(2, [&](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      co_await world.barrier();
      all_here.arrive_and_wait();
      int value = 0;
      if (rank == 0) {
        std::stop_source source;
        source.request_stop();
        auto op = world.recv(std::span(&value, 1), from{1}, stop{source.get_token()});
        co_await tell_and_call_again(world, op);
        co_return;
      }
      auto op = world.recv(std::span(&value, 1), from{0});
      co_await tell_and_call_again(world, op);
    };
    return cohort::run(rank_main);
  });
  for (const auto& r : ranks) check_survivor(r, {errc::cancelled, {0}, "receive", {"rank 0 cancelled receive"}});
}

TEST_CASE("a functor throws: every rank is told on which one and what") {
  struct attempt {
    int thrower;
    std::size_t count;  // the longer ones are combined while they arrive
  };
  for (const attempt& each : {attempt{0, 1000}, attempt{3, 1000}, attempt{1, 1'000'000}}) {
    const int thrower = each.thrower;
    const std::size_t count = each.count;
    CAPTURE(thrower);
    CAPTURE(count);
    const meeting_point all_here(4);
    const auto ranks = run_ranks(4, [&](int rank) {
      const auto rank_main = [&](world_type world) -> task<> {
        co_await world.barrier();
        all_here.arrive_and_wait();
        std::vector<int> v(count, rank);
        const auto careful = [&](int a, int b) -> int {
          if (rank == thrower) throw std::domain_error("no such sum");
          return a + b;
        };
        // What the thrower had sent before may complete a call of the others: then their next one fails.
        std::string foreign;
        for (bool fine = true; fine && foreign.empty();) {
          auto op = world.all_reduce(v, careful);
          try {
            fine = co_await tell(op);
          } catch (const std::domain_error& e) {
            foreign = e.what();
          }
        }
        if (!foreign.empty()) {
          harness::expect(rank == thrower && foreign == "no such sum", "the functor's own exception");
          say("thrown");
        }
        auto later = world.barrier();
        co_await tell(later);
      };
      return cohort::run(rank_main);
    });
    check_survivors(ranks, {thrower}, {errc::user_function_failed, {thrower}, "all_reduce", {"threw: no such sum"}});
    const auto& r = ranks[static_cast<std::size_t>(thrower)];
    INFO(harness::describe(r));
    CHECK(r.exit_code == 0);
    CHECK(time_of(r, "thrown") >= 0);
    const auto errors = errors_of(r);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0].code == errc::user_function_failed);
  }
}

TEST_CASE("as_result gives the code of the failure, and of every call after it") {
  const auto ranks = run_ranks(3, [](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      if (rank == 2) {
        std::raise(SIGKILL);
      }
      for (int i = 0; i < 3; ++i) {
        auto op = as_result(world.barrier());
        const auto outcome = co_await op;
        harness::expect(!outcome && std::error_code(outcome.error()) == errc::peer_lost, "peer_lost");
        harness::expect(world.failed(), "a failed communicator");
      }
      say("three times");
    };
    return cohort::run(rank_main);
  });
  for (const int r : {0, 1}) {
    INFO(harness::describe(ranks));
    CHECK(ranks[static_cast<std::size_t>(r)].ok());
    CHECK(time_of(ranks[static_cast<std::size_t>(r)], "three times") >= 0);
  }
}

TEST_CASE("every operation in flight ends with an error of its own, once") {
  const meeting_point all_here(3);
  const auto ranks = run_ranks(3, [&](int rank) {
    const auto rank_main = [&](world_type world) -> task<> {
      co_await world.barrier();
      all_here.arrive_and_wait();
      if (rank == 1) std::raise(SIGKILL);
      std::vector<float> a(10, 1.0F);
      std::vector<float> b(100000, 1.0F);
      int value = 0;
      auto first = world.all_reduce(a, sum{});
      auto second = world.all_reduce(b, sum{});
      auto third = world.recv(std::span(&value, 1), from{1}, tag{4});
      auto fourth = world.recv(a, from_any, any_tag);
      co_await tell(fourth);
      co_await tell(second);
      co_await tell(first);
      co_await tell(third);
    };
    return cohort::run(rank_main);
  });
  for (const int survivor : {0, 2}) {
    const auto& r = ranks[static_cast<std::size_t>(survivor)];
    INFO(harness::describe(r));
    CHECK(r.exit_code == 0);
    const auto errors = errors_of(r);
    REQUIRE(errors.size() == 4);
    for (const told_error& e : errors) {
      CHECK(e.code == errc::peer_lost);
      CHECK(contains(e.text, "rank 1"));
    }
    CHECK(errors[1].sequence - errors[2].sequence == 1);
    CHECK(contains(errors[1].text, "all_reduce #2"));
    CHECK(contains(errors[2].text, "all_reduce #1"));
  }
}
