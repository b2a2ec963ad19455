// SPDX-License-Identifier: BSL-1.0
// What two ranks may call that is carried out where it is called, if the other is there: all of it in any order while now and
// then one of them is late, and what the second of them may do wrong. For any backend with memory on the host.
#pragma once

#include "rank_body.hpp"

#include <cohort/cohort.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace pair_calls {

using namespace cohort;
using namespace std::chrono_literals;

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
inline void come_late(dice& d, int rank) {
  const unsigned who = d.next(3);
  const unsigned how = d.next(8);
  if (who != static_cast<unsigned>(rank)) return;
  if (how == 0) std::this_thread::sleep_for(2ms);
  const auto until = std::chrono::steady_clock::now() + how * 300ns;
  while (std::chrono::steady_clock::now() < until) {}
}

inline int value(int rank, std::size_t i) { return (rank + 1) * 1000 + static_cast<int>(i % 100); }
inline int total(std::size_t i) { return value(0, i) + value(1, i); }

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

template <class Backend>
task<> reductions(communicator<Backend>& world, dice& d, tally& t, std::size_t n) {
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

template <class Backend>
task<> movements(communicator<Backend>& world, dice& d, tally& t, std::size_t n) {
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

template <class Backend>
task<> messages(communicator<Backend>& world, dice& d, tally& t, std::size_t n) {
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

/// Result: how many operations had a frame, and how many had none
template <class Backend>
task<tally> in_any_order(communicator<Backend>& world, int rounds) {
  dice d;
  tally t;
  constexpr std::size_t sizes[] = {0, 1, 2, 6, 24, 25, 1000, 4096, 16384, 40000};
  for (int round = 0; round < rounds; ++round) {
    const std::size_t n = sizes[d.next(std::size(sizes))];
    const unsigned what = d.next(3);
    come_late(d, world.rank());
    if (what == 0) co_await reductions(world, d, t, n);
    if (what == 1) co_await movements(world, d, t, n);
    if (what == 2) co_await messages(world, d, t, n);
  }
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
  co_return t;
}

/// What the second of two ranks calls when the first is there already is wrong, in one of several ways.
enum class mistake { functor, count, kind, element, room };

/// Result: what this rank is told
template <mistake What, class Backend>
task<std::string> second_is_wrong(communicator<Backend>& world) {
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
  co_return text;
}

}  // namespace pair_calls
