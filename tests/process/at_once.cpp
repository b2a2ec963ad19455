// SPDX-License-Identifier: BSL-1.0
// Operations of ranks that find the others there are carried out where they are called, in memory or by messages over
// sockets; those that do not go on in a frame from where they are. Either way they do and say the same. Two ranks: more than
// there are cores for do not look for each other first.
#include "../support/processes.hpp"

#include <cohort/cohort.hpp>
#include <cohort/transport/shm/window.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace cohort;
using namespace std::chrono_literals;

namespace {

/// Both ranks draw the same numbers.
class dice {
 public:
  unsigned next(unsigned sides) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<unsigned>(state_ >> 33) % sides;
  }

 private:
  std::uint64_t state_ = 20261122;
};

/// One rank, or none, comes late: by so little that the other still looks for it, or by much more.
void come_late(dice& d, int rank) {
  const unsigned who = d.next(3);
  const unsigned how = d.next(8);
  if (who != static_cast<unsigned>(rank)) return;
  if (how == 0) std::this_thread::sleep_for(2ms);
  const auto until = std::chrono::steady_clock::now() + how * 300ns;
  while (std::chrono::steady_clock::now() < until) {}
}

int value(int rank, std::size_t i) { return (rank + 1) * 1000 + static_cast<int>(i % 100); }
int total(std::size_t i) { return value(0, i) + value(1, i); }

struct tally {
  int without_frame = 0;
  int with_frame = 0;
  template <class T>
  operation<T>& count(operation<T>& op) {
    ++(op.record() == nullptr ? without_frame : with_frame);
    return op;
  }
};

using ints = std::vector<int>;

template <class Each>
void check(const ints& v, const char* what, const Each& each) {
  for (std::size_t i = 0; i < v.size(); ++i) harness::expect(v[i] == each(i), what);
}

task<> reductions(communicator<cpu>& world, dice& d, tally& t, std::size_t n) {
  const int r = world.rank();
  const int p = static_cast<int>(d.next(2));
  ints in(n);
  for (std::size_t i = 0; i < n; ++i) in[i] = value(r, i);
  ints out(n, -1);
  const unsigned which = d.next(8);
  if (which == 0) {
    auto op = world.all_reduce(in, out, sum{});
    co_await t.count(op);
    check(out, "all_reduce", total);
  } else if (which == 1) {
    auto op = world.all_reduce(in, sum{});
    co_await t.count(op);
    check(in, "all_reduce in place", total);
  } else if (which == 2) {  // it might throw
    auto op = world.all_reduce(in, out, [](int a, int b) { return 2 * a + b; });
    co_await t.count(op);
    check(out, "all_reduce with a functor of its own", [](std::size_t i) { return 2 * value(0, i) + value(1, i); });
  } else if (which == 3) {
    std::vector<double> x(n, r + 1.0);
    auto op = world.all_reduce(x, premultiplied_sum{0.5});
    co_await t.count(op);
    for (const double each : x) harness::expect(each == 1.5, "premultiplied_sum");
  } else if (which == 4) {
    auto op = world.all_reduce(r + 1.0, average{});
    const double mean = co_await t.count(op);
    harness::expect(mean == 1.5, "the average of two values");
  } else if (which == 5) {
    auto op = world.scan(in, out, sum{});
    co_await t.count(op);
    check(out, "scan", [&](std::size_t i) { return r == 0 ? value(0, i) : total(i); });
  } else if (which == 6) {
    ints both(2 * n);
    for (std::size_t i = 0; i < 2 * n; ++i) both[i] = value(r, i);
    auto op = world.reduce_scatter(both, out, sum{});
    co_await t.count(op);
    check(out, "reduce_scatter", [&](std::size_t i) { return total(static_cast<std::size_t>(r) * n + i); });
  } else {
    auto op = world.reduce(in, out, sum{}, root{p});
    co_await t.count(op);
    check(out, "reduce", [&](std::size_t i) { return r == p ? total(i) : -1; });
  }
}

task<> movements(communicator<cpu>& world, dice& d, tally& t, std::size_t n) {
  const int r = world.rank();
  const int p = static_cast<int>(d.next(2));
  ints own(n);
  for (std::size_t i = 0; i < n; ++i) own[i] = value(r, i);
  ints both(2 * n);
  for (std::size_t i = 0; i < 2 * n; ++i) both[i] = value(r, i);
  ints out(n, -1);
  ints all(2 * n, -1);
  const unsigned which = d.next(6);
  if (which == 0) {
    auto op = world.barrier();
    co_await t.count(op);
  } else if (which == 1) {
    auto op = world.broadcast(own, root{p});
    co_await t.count(op);
    check(own, "broadcast", [&](std::size_t i) { return value(p, i); });
  } else if (which == 2) {
    auto op = world.all_gather(own, all);
    co_await t.count(op);
    check(all, "all_gather", [&](std::size_t i) { return value(i < n ? 0 : 1, i % n); });
  } else if (which == 3) {
    auto op = world.gather(own, all, root{p});
    co_await t.count(op);
    if (r == p) check(all, "gather", [&](std::size_t i) { return value(i < n ? 0 : 1, i % n); });
  } else if (which == 4) {
    auto op = world.scatter(both, out, root{p});
    co_await t.count(op);
    check(out, "scatter", [&](std::size_t i) { return value(p, static_cast<std::size_t>(r) * n + i); });
  } else {
    auto op = world.all_to_all(both, all);
    co_await t.count(op);
    check(all, "all_to_all",
          [&](std::size_t i) { return value(i < n ? 0 : 1, static_cast<std::size_t>(r) * n + i % n); });
  }
}

task<> messages(communicator<cpu>& world, dice& d, tally& t, std::size_t n) {
  const int sender = static_cast<int>(d.next(2));
  const unsigned which = d.next(3);
  ints first(n);
  for (std::size_t i = 0; i < n; ++i) first[i] = value(sender, i);
  if (which == 0) {  // the second is asked for first
    const ints second{7};
    if (world.rank() == sender) {
      auto a = world.send(first, to{1 - sender}, tag{1});
      auto b = world.send(second, to{1 - sender}, tag{2});
      co_await t.count(a);
      co_await t.count(b);
    } else {
      ints got(1);
      ints rest(n + 5, -1);
      auto b = world.recv(got, from{sender}, tag{2});
      const received two = co_await t.count(b);
      auto a = world.recv(rest, from{sender}, tag{1});
      const received one = co_await t.count(a);
      harness::expect(got[0] == 7 && two.count == 1 && two.tag == 2 && two.source == sender, "the second message");
      harness::expect(one.count == n && one.tag == 1 && one.source == sender, "the first message");
      for (std::size_t i = 0; i < rest.size(); ++i) {
        harness::expect(rest[i] == (i < n ? first[i] : -1), "its elements, and no others");
      }
    }
  } else if (which == 1) {  // two receives that wait: each gets its own
    if (world.rank() == sender) {
      for (const int x : {1, 2, 3}) {
        const ints one{x};
        co_await world.send(one, to{1 - sender});
      }
    } else {
      ints got[3] = {{0}, {0}, {0}};
      auto a = world.recv(got[0], from{sender});
      auto b = world.recv(got[1], from_any, any_tag);
      auto c = world.recv(got[2], from{sender});
      co_await t.count(c);
      co_await t.count(b);
      co_await t.count(a);
      harness::expect(got[0][0] == 1 && got[1][0] == 2 && got[2][0] == 3,
                      "messages in the order in which they were sent");
    }
  } else {
    ints mine(n, world.rank());
    ints theirs(n, -1);
    co_await world.exchange(mine, to{1 - world.rank()}, theirs, from{1 - world.rank()});
    check(theirs, "exchange", [&](std::size_t) { return 1 - world.rank(); });
  }
}

task<int> in_any_order(communicator<cpu> world) {
  dice d;
  tally t;
  constexpr std::size_t sizes[] = {0, 1, 2, 6, 24, 25, 1000, 4096, 16384, 40000};
  for (int round = 0; round < 1500; ++round) {
    const std::size_t n = sizes[d.next(std::size(sizes))];
    const unsigned what = d.next(3);
    come_late(d, world.rank());
    if (what == 0) co_await reductions(world, d, t, n);
    if (what == 1) co_await movements(world, d, t, n);
    if (what == 2) co_await messages(world, d, t, n);
  }
  std::printf("%d without a frame, %d with one\n", t.without_frame, t.with_frame);
  // Where there is a core for each, whoever comes second finds the other there.
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0 && CPU_COUNT(&cores) >= 2) {
    harness::expect(t.without_frame > 0, "operations without a frame");
  }
  harness::expect(t.with_frame > 0, "operations that had to wait");
  co_await world.barrier();
  const auto& engine = static_cast<const transport::sharing_engine&>(world.calls().state()->engine());
  harness::expect(engine.nothing_early(), "no message that nobody asks for");
  co_return 0;
}

enum class manner { plain, in_a_frame, registered };

/// An all_reduce that is combined in slices, each rank in a manner of its own, and one of them slow to combine its own: the
/// other has raised its slice by then, and goes on in a frame.
task<> in_slices(communicator<cpu>& world, std::size_t n, manner how, int slow, tally& t) {
  const int r = world.rank();
  ints in(n);
  ints out(n, -1);
  for (std::size_t i = 0; i < n; ++i) in[i] = value(r, i);
  std::optional<registration> reached[2];
  if (how == manner::registered) {
    reached[0].emplace(world.register_memory(std::span(in)));
    reached[1].emplace(world.register_memory(std::span(out)));
  }
  bool pause = slow == r;
  const auto functor = [&pause](int a, int b) {
    if (pause) {
      pause = false;
      std::this_thread::sleep_for(200us);
    }
    return 2 * a + b;
  };
  const std::stop_source never;
  auto op = how == manner::in_a_frame ? world.all_reduce(in, out, functor, stop{never.get_token()})
                                      : world.all_reduce(in, out, functor);
  co_await t.count(op);
  check(out, "an all_reduce in slices", [](std::size_t i) { return 2 * value(0, i) + value(1, i); });
  auto again = world.all_reduce(in, sum{});
  co_await t.count(again);
  check(in, "one in place after it", total);
}

task<int> in_any_manner(communicator<cpu> world) {
  constexpr manner manners[] = {manner::plain, manner::in_a_frame, manner::registered};
  tally t;
  for (const std::size_t n : {2049U, 8191U, 8192U, 10000U, 16384U}) {
    for (const manner first : manners) {
      for (const manner second : manners) {
        for (int slow = -1; slow < 2; ++slow) {
          for (int round = 0; round < 3; ++round)
            co_await in_slices(world, n, world.rank() == 0 ? first : second, slow, t);
        }
      }
    }
  }
  harness::expect(t.with_frame > 0, "operations that had to wait");
  co_return 0;
}

/// What the second of two ranks calls when the first is there already is wrong, in one of several ways.
enum class mistake { functor, count, kind, element, room };

template <mistake What>
task<int> second_is_wrong(communicator<cpu> world) {
  std::vector<int> v{1, 2, 3};
  for (int i = 0; i < 20; ++i) co_await world.all_reduce(v, max{});
  if (world.rank() == 1) std::this_thread::sleep_for(20ms);  // the other has called, and waits in a frame
  const bool second = world.rank() == 1;
  std::string text = "nothing";
  try {
    if constexpr (What == mistake::functor) {
      co_await world.all_reduce(v, [second](int a, int b) {
        if (second) throw std::domain_error("no such sum");
        return a + b;
      });
      co_await world.barrier();  // the first has its sum: it hears of the other's mistake at its next call
    } else if constexpr (What == mistake::count) {
      const std::span<int> part(v.data(), second ? 2 : 3);
      co_await world.all_reduce(part, max{});
    } else if constexpr (What == mistake::kind) {
      if (second) {
        co_await world.barrier();
      } else {
        co_await world.all_reduce(v, max{});
      }
    } else if constexpr (What == mistake::element) {
      std::vector<float> other(3);
      if (second) {
        co_await world.recv(other, from{0});
      } else {
        co_await world.send(v, to{1});
        co_await world.barrier();
      }
    } else {
      const std::span<int> part(v.data(), 2);
      if (second) {
        co_await world.recv(part, from{0});
      } else {
        co_await world.send(v, to{1});
        co_await world.barrier();
      }
    }
  } catch (const std::exception& e) {
    text = e.what();
  }
  std::printf("%s\n", text.c_str());
  co_return 0;
}

const harness::variables in_memory{};
const harness::variables over_sockets{{"COHORT_SHM", "0"}};

std::vector<harness::rank_result> ends_of(int ranks, task<int> (*rank_main)(communicator<cpu>),
                                          const harness::variables& environment) {
  harness::rank_options options;
  options.environment = environment;
  return harness::run_ranks(
      ranks, [rank_main](int) { return cohort::run(rank_main); }, options);
}

std::vector<harness::rank_result> expect_ok(int ranks, task<int> (*rank_main)(communicator<cpu>),
                                            const harness::variables& environment) {
  auto results = ends_of(ranks, rank_main, environment);
  for (const harness::rank_result& r : results) CHECK_MESSAGE(r.ok(), harness::describe(results));
  return results;
}

template <mistake What>
std::vector<std::string> told(const harness::variables& environment) {
  std::vector<std::string> texts;
  for (const harness::rank_result& r : expect_ok(2, second_is_wrong<What>, environment)) texts.push_back(r.out);
  return texts;
}

/// Whoever needs nothing of a rank may be ahead of it by window_head::ahead operations: here they wait in the window.
task<int> root_is_ahead(communicator<cpu> world) {
  const int ahead = static_cast<int>(transport::window_head::ahead(world.size()));
  int value = 0;
  co_await world.barrier();
  for (int round = 0; round < 50; ++round) {
    if (world.rank() == 1) {
      co_await world.recv(std::span(&value, 1), from{0});  // sent after all those that it has not entered yet
      harness::expect(value == round, "the message after the broadcasts");
    }
    for (int i = 0; i < ahead; ++i) {
      value = world.rank() == 0 ? 1000 * round + i : -1;
      co_await world.broadcast(std::span(&value, 1), root{0});
      harness::expect(value == 1000 * round + i, "a broadcast that waited");
    }
    if (world.rank() == 0) co_await world.send(std::span(&round, 1), to{1});
    co_await world.barrier();
  }
  co_return 0;
}

/// What a root has given is there for the others when it has left.
task<int> root_leaves(communicator<cpu> world) {
  const int ahead = static_cast<int>(transport::window_head::ahead(world.size()));
  co_await world.barrier();
  if (world.rank() == 1) std::this_thread::sleep_for(300ms);  // by then the other has gone, if nothing holds it back
  const std::stop_source never;
  for (int i = 0; i < ahead; ++i) {
    int value = world.rank() == 0 ? i : -1;
    const std::span<int> one(&value, 1);
    auto op = i % 2 == 0 || world.rank() == 0 ? world.broadcast(one, root{0})
                                              : world.broadcast(one, root{0}, stop{never.get_token()});  // in a frame
    co_await op;
    harness::expect(value == i, "a broadcast of a root that has left");
  }
  co_return 0;
}

/// Two roots who need nothing of each other disagree on who is it.
task<int> two_roots(communicator<cpu> world) {
  int value = 7;
  std::string text = "nothing";
  for (int i = 0; i < 20; ++i) co_await world.all_reduce(std::span(&value, 1), max{});
  try {
    co_await world.broadcast(std::span(&value, 1), root{world.rank()});
    for (int i = 0; i < 2 * static_cast<int>(transport::window_head::ahead(world.size())); ++i) {
      co_await world.broadcast(std::span(&value, 1), root{0});
    }
    co_await world.barrier();
  } catch (const error& e) {
    text = e.what();
  }
  std::printf("%s\n", text.c_str());
  co_return 0;
}

/// Half a part of the window has no room for one: a reduce_scatter of these goes by messages, and leaves no trace there.
struct long_element {
  int number;
  std::byte rest[600 << 10];
};

task<int> long_elements(communicator<cpu> world) {
  std::vector<long_element> in(2);
  std::vector<long_element> out(1);
  for (int i = 0; i < 20; ++i) {
    if (i % 3 == 0) {
      for (int k = 0; k < 2; ++k) in[static_cast<std::size_t>(k)].number = 10 * world.rank() + i + k;
      co_await world.reduce_scatter(
          in, out, [](const long_element& a, const long_element& b) { return a.number > b.number ? a : b; });
      harness::expect(out[0].number == 10 + i + world.rank(), "the larger of two");
    }
    int value = world.rank() == 0 ? i : -1;
    co_await world.broadcast(std::span(&value, 1), root{0});
    harness::expect(value == i, "a broadcast beside them");
  }
  co_return 0;
}

bool says(const std::string& text, const char* what) { return text.find(what) != std::string::npos; }

}  // namespace

TEST_CASE("operations of two ranks, of which one comes late, in any order") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const harness::rank_result& r : expect_ok(2, in_any_order, environment)) MESSAGE(r.out);
  }
}

TEST_CASE("an all_reduce in slices, whichever of two ranks has a frame, registered buffers, or takes its time") {
  expect_ok(2, in_any_manner, in_memory);
}

TEST_CASE("what the second of two ranks does wrong is told as ever") {
  for (const auto& environment : {in_memory, over_sockets}) {
    const auto functor = told<mistake::functor>(environment);
    CHECK_MESSAGE(says(functor[0], "a function of rank 1 threw: no such sum"), functor[0]);
    CHECK_MESSAGE(says(functor[1], "no such sum"), functor[1]);
    for (const std::string& text : told<mistake::count>(environment)) {
      CHECK_MESSAGE(says(text, "all_reduce(3 x int32, max)"), text);
      CHECK_MESSAGE(says(text, "all_reduce(2 x int32, max)"), text);
    }
    for (const std::string& text : told<mistake::kind>(environment)) {
      CHECK_MESSAGE(says(text, "called barrier()"), text);
      CHECK_MESSAGE(says(text, "called all_reduce(3 x int32, max)"), text);
    }
    for (const std::string& text : told<mistake::element>(environment)) {
      CHECK_MESSAGE(says(text, "rank 0 sent elements of int32 with tag 0, rank 1 receives float32"), text);
    }
    for (const std::string& text : told<mistake::room>(environment)) {
      CHECK_MESSAGE(says(text, "rank 0 sent 3 elements with tag 0, rank 1 has room for 2"), text);
    }
  }
}

TEST_CASE("a rank that needs nothing of another is ahead of it, as far as it may be, and no further") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const int ranks : {2, 4}) {
      expect_ok(ranks, root_is_ahead, environment);
    }
  }
}

TEST_CASE("a root that was ahead has left") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const int ranks : {2, 4}) {
      expect_ok(ranks, root_leaves, environment);
    }
  }
}

TEST_CASE("ranks that are ahead of each other find out that they called different things") {
  for (const auto& environment : {in_memory, over_sockets}) {
    for (const harness::rank_result& r : ends_of(2, two_roots, environment)) {
      CHECK_MESSAGE(says(r.out, "rank 0 called broadcast(1 x int32, root 0)"), r.out);
      CHECK_MESSAGE(says(r.out, "rank 1 called broadcast(1 x int32, root 1)"), r.out);
    }
  }
}

TEST_CASE("operations on elements too long for the window stand beside those in it") {
  expect_ok(2, long_elements, in_memory);
}
