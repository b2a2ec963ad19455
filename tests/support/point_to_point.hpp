// SPDX-License-Identifier: BSL-1.0
// What point-to-point messages promise, as functions over any communicator: run by ranks of one process and by
// processes over TCP. Each gives the sentences of what went wrong; none means that all is well.
#pragma once

#include <cohort/cohort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace harness {

class findings {
 public:
  void expect(bool condition, const std::string& what) {
    if (!condition) all_.push_back(what);
  }
  template <class A, class B>
  void equal(const A& found, const B& expected, const std::string& what) {
    if (!(found == expected)) all_.push_back(what);
  }
  [[nodiscard]] const std::vector<std::string>& list() const noexcept { return all_; }

 private:
  std::vector<std::string> all_{};
};

inline std::vector<std::int32_t> numbers(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> v(count);
  std::iota(v.begin(), v.end(), first);
  return v;
}

/// Rank 0 sends under three tags; rank 1 asks for them in another order, then by wildcards.
template <class World>
cohort::task<> tags_and_wildcards(const World& world, findings& found) {
  using namespace cohort;
  if (world.rank() == 0) {
    for (int t = 0; t < 3; ++t) {
      const auto v = numbers(4, 10 * t);
      co_await world.send(v, to{1}, tag{t});
    }
    const auto more = numbers(2, 100);
    co_await world.send(more, to{1}, tag{77});
  } else if (world.rank() == 1) {
    for (const int t : {2, 0, 1}) {
      std::vector<std::int32_t> v(4);
      const received got = co_await world.recv(v, from{0}, tag{t});
      found.equal(v, numbers(4, 10 * t), "tag " + std::to_string(t) + ": other elements");
      found.equal(got, received{0, t, 4}, "tag " + std::to_string(t) + ": another outcome");
    }
    std::vector<std::int32_t> v(8, -1);
    const received got = co_await world.recv(v, from_any, any_tag);
    found.equal(got, received{0, 77, 2}, "wildcards: another outcome");
    found.equal(v[1], 101, "wildcards: other elements");
    found.equal(v[2], -1, "wildcards: written past the message");
  }
}

/// Two hundred messages under one tag of every length class, received in the order in which they were sent.
template <class World>
cohort::task<> order_of_one_tag(const World& world, findings& found) {
  using namespace cohort;
  const auto length = [](int i) { return static_cast<std::size_t>(i % 7 == 3 ? 100000 : i % 5 == 2 ? 0 : i); };
  if (world.rank() == 0) {
    std::vector<std::vector<std::int32_t>> data;
    std::vector<operation<>> sends;
    for (int i = 0; i < 200; ++i) data.push_back(numbers(length(i), i));
    for (int i = 0; i < 200; ++i) sends.push_back(world.send(data[static_cast<std::size_t>(i)], to{1}, tag{5}));
    for (auto& s : sends) co_await s;
  } else if (world.rank() == 1) {
    std::vector<std::int32_t> v(100000);
    for (int i = 0; i < 200; ++i) {
      const received got = co_await world.recv(v, from_any, tag{5});
      found.equal(got.count, length(i), "message " + std::to_string(i) + " is out of order");
      if (got.count > 0)
        found.equal(v[got.count - 1], i + static_cast<int>(got.count) - 1, "wrong end of " + std::to_string(i));
    }
  }
}

/// A long message that nobody has asked for does not hold up a short one behind it.
template <class World>
cohort::task<> no_head_of_line(const World& world, findings& found) {
  using namespace cohort;
  const std::size_t large = 3'000'000;
  if (world.rank() == 0) {
    const auto first = numbers(large, 1);
    const auto second = numbers(3, 7);
    auto a = world.send(first, to{1}, tag{1});
    auto b = world.send(second, to{1}, tag{2});
    co_await b;
    co_await a;
  } else if (world.rank() == 1) {
    std::vector<std::int32_t> small(3);
    co_await world.recv(small, from{0}, tag{2});
    found.equal(small, numbers(3, 7), "the short message came wrong");
    std::vector<std::int32_t> big(large);
    co_await world.recv(big, from{0}, tag{1});
    found.equal(big, numbers(large, 1), "the long message came wrong");
  }
}

/// Thousands of short messages in flight before the first is asked for.
template <class World>
cohort::task<> thousands_in_flight(const World& world, findings& found) {
  using namespace cohort;
  constexpr int messages = 5000;
  if (world.rank() == 0) {
    std::vector<std::int64_t> data(messages);
    std::vector<operation<>> sends;
    for (int i = 0; i < messages; ++i) {
      data[static_cast<std::size_t>(i)] = i;
      sends.push_back(world.send(std::span(&data[static_cast<std::size_t>(i)], 1), to{1}, tag{i % 3}));
    }
    auto last = world.send(std::span<const std::int64_t>(data), to{1}, tag{9});
    for (auto& s : sends) co_await s;
    co_await last;
  } else if (world.rank() == 1) {
    std::vector<std::int64_t> all(messages);
    co_await world.recv(all, from{0}, tag{9});
    found.equal(all.back(), messages - 1, "the last message came wrong");
    for (const int t : {2, 1, 0}) {
      for (int i = t; i < messages; i += 3) {
        std::int64_t one = -1;
        co_await world.recv(std::span(&one, 1), from{0}, tag{t});
        found.equal(one, i, "message " + std::to_string(i) + " came wrong");
      }
    }
  }
}

/// Messages to oneself, short and long, asked for before and after.
template <class World>
cohort::task<> to_oneself(const World& world, findings& found) {
  using namespace cohort;
  const int me = world.rank();
  for (const std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{200000}}) {
    const auto out = numbers(count, me);
    std::vector<std::int32_t> in(count);
    auto sent = world.send(out, to{me}, tag{3});
    co_await world.recv(in, from{me}, tag{3});
    co_await sent;
    found.equal(in, out, "to oneself, sent first");
    std::fill(in.begin(), in.end(), 0);
    auto got = world.recv(in, from{me}, tag{4});
    co_await world.send(out, to{me}, tag{4});
    co_await got;
    found.equal(in, out, "to oneself, asked for first");
  }
}

/// A probe tells who sent how much, leaves it there, and sees what is there already as well as what comes.
template <class World>
cohort::task<> probes(const World& world, findings& found) {
  using namespace cohort;
  const int last = world.size() - 1;
  if (world.rank() == last) {
    found.expect(!world.try_probe(from{0}, tag{1000}).has_value(), "a probe found a message that nobody sent");
    for (int n = 0; n < last; ++n) {
      const received seen = co_await world.probe(from_any, tag{6});
      found.equal(seen.count, static_cast<std::size_t>(seen.source * 100000), "probe: another count");
      const received again = co_await world.probe(from{seen.source}, any_tag);
      found.equal(again, seen, "probe: it did not stay");
      found.expect(world.try_probe(from{seen.source}, tag{6}) == seen, "try_probe does not see what probe saw");
      std::vector<std::int32_t> v(seen.count);
      const received got = co_await world.recv(v, from{seen.source}, tag{6});
      found.equal(got, seen, "probe: the receive got another message");
      found.equal(v, numbers(v.size(), seen.source), "probe: other elements");
    }
    found.expect(!world.try_probe(from_any, tag{6}).has_value(), "a probe found a message that was received");
  } else {
    const auto mine = numbers(static_cast<std::size_t>(world.rank() * 100000), world.rank());
    co_await world.send(mine, to{last}, tag{6});
  }
}

/// Messages whose length only their sender knows.
template <class World>
cohort::task<> growing_containers(const World& world, findings& found) {
  using namespace cohort;
  if (world.rank() == 0) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{70000}, std::size_t{500000}}) {
      for (int twice = 0; twice < 2; ++twice) {
        const auto v = numbers(count, 1);
        co_await world.send(v, to{1}, tag{8});
      }
    }
    const std::string text = "a string grows as well";
    co_await world.send(text, to{1}, tag{8});
  } else if (world.rank() == 1) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{70000}, std::size_t{500000}}) {
      std::vector<std::int32_t> v(17, -1);
      auto posted_first = world.recv(growing(v), from{0}, tag{8});
      const received got = co_await posted_first;
      found.equal(got.count, count, "growing: another count");
      found.equal(v, numbers(count, 1), "growing: other elements");
      co_await world.probe(from{0}, tag{8});  // here before it is asked for
      std::vector<std::int32_t> w;
      co_await world.recv(growing(w), from_any, any_tag);
      found.equal(w, numbers(count, 1), "growing, early: other elements");
    }
    std::string text;
    co_await world.recv(growing(text), from{0}, tag{8});
    found.equal(text, std::string("a string grows as well"), "growing: another text");
  }
}

/// A ring by one batch: every rank sends right and receives from the left, at once.
template <class World>
cohort::task<> ring_by_batch(const World& world, findings& found) {
  using namespace cohort;
  const int n = world.size();
  const int right = (world.rank() + 1) % n;
  const int left = (world.rank() + n - 1) % n;
  for (const std::size_t count : {std::size_t{1}, std::size_t{300000}}) {
    const auto out = numbers(count, world.rank());
    std::vector<std::int32_t> in(count);
    std::vector<std::int32_t> text;
    auto b = world.batch(sending(out, to{right}), receiving(in, from{left}), sending(out, to{left}, tag{1}),
                         receiving(growing(text), from{right}, tag{1}));
    const received first = co_await b[1];
    found.equal(first, received{left, 0, count}, "batch: another outcome of the receive");
    const std::vector<received> all = co_await b.all();
    found.equal(all.size(), std::size_t{4}, "batch: another number of outcomes");
    found.equal(all[0], received{-1, 0, count}, "batch: another outcome of the send");
    found.equal(in, numbers(count, left), "batch: other elements");
    found.equal(text, numbers(count, right), "batch: other elements in a container that grew");
  }
}

/// Hundreds of short messages are there before any of them is asked for, and more come meanwhile; and hundreds of calls
/// that the first rank makes without waiting for anybody.
template <class World>
cohort::task<> a_backlog(const World& world, findings& found) {
  using namespace cohort;
  constexpr int count = 600;
  const auto message = [](int i) { return numbers(static_cast<std::size_t>(i % 70), i); };
  if (world.rank() == 0) {
    for (int i = 0; i < count; ++i) {
      const auto v = message(i);
      co_await world.send(v, to{1}, tag{i % 5});
      if (i == count / 2) {
        const auto word = numbers(1, 1);
        co_await world.send(word, to{1}, tag{9});
      }
    }
  } else if (world.rank() == 1) {
    std::vector<std::int32_t> word(1);
    co_await world.recv(word, from{0}, tag{9});
    for (int i = 0; i < count; ++i) {
      std::vector<std::int32_t> v(static_cast<std::size_t>(i % 70 + i % 3), -1);
      received got;
      if (i % 7 == 0) got = co_await world.recv(v, from_any, tag{i % 5});
      else got = co_await world.recv(v, from{0}, tag{i % 5});
      found.equal(got, received{0, i % 5, static_cast<std::size_t>(i % 70)}, "backlog: another outcome");
      v.resize(static_cast<std::size_t>(i % 70));
      found.equal(v, message(i), "backlog: other elements");
    }
  }
  co_await world.barrier();
  for (int i = 0; i < count; ++i) {
    std::vector<std::int32_t> v{i, world.rank()};
    co_await world.scan(v, sum{});
    const int r = world.rank();
    found.equal(v, std::vector<std::int32_t>{i * (r + 1), r * (r + 1) / 2}, "backlog: another scan");
  }
}

template <class World>
cohort::task<std::vector<std::string>> point_to_point(const World& world) {
  findings found;
  co_await tags_and_wildcards(world, found);
  co_await order_of_one_tag(world, found);
  co_await no_head_of_line(world, found);
  co_await thousands_in_flight(world, found);
  co_await a_backlog(world, found);
  co_await to_oneself(world, found);
  co_await world.barrier();
  co_await probes(world, found);
  co_await growing_containers(world, found);
  co_await world.barrier();  // nobody's wildcards shall meet the messages of the ring
  co_await ring_by_batch(world, found);
  co_await world.barrier();
  co_return found.list();
}

}  // namespace harness
