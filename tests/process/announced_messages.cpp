// SPDX-License-Identifier: BSL-1.0
// Long messages over sockets, whose first bytes come with their announcement: every length and cut about the limit, before and
// after they are asked for, more than a receiver has room for, used while they arrive, and either end giving up.
#include "../support/processes.hpp"
#include "fault_support.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

using namespace cohort;

namespace {

using world_type = communicator<cpu>;

/// About what comes unasked, over TCP and over TLS, and several times that.
constexpr std::array<std::size_t, 10> lengths{262140,  262144,  262148,  524292,  1048572,
                                              1048576, 1048580, 2097152, 3000004, 9437188};

std::vector<std::uint32_t> values(std::size_t bytes, std::uint32_t of) {
  std::vector<std::uint32_t> v(bytes / sizeof(std::uint32_t));
  std::uint32_t* const at = v.data();  // millions of them, without optimisation
  for (std::size_t i = 0; i < v.size(); ++i) at[i] = of * 0x9e3779b9U + static_cast<std::uint32_t>(i);
  return v;
}

template <class Body>
void over_sockets(int ranks, Body body) {
  harness::rank_options options;
  options.environment = {{"COHORT_SHM", "0"}};
  const auto results = harness::run_ranks(
      ranks, [body](int) { return run(body); }, options);
  for (const auto& r : results) {
    INFO(harness::describe(r));
    CHECK(r.ok());
  }
}

/// When a message is asked for: one that was announced before is then here with its first bytes, or with some of them.
enum class asked { before, in_the_middle, after };

task<int> all_lengths(world_type world) {
  std::uint32_t number = 0;
  std::array<int, 1> signal{};
  for (const std::size_t bytes : lengths) {
    for (const asked when : {asked::before, asked::in_the_middle, asked::after}) {
      ++number;
      const auto sent = values(bytes, number);
      if (world.rank() == 0) {
        if (when == asked::before) co_await world.recv(signal, from{1});
        auto sending = world.send(sent, to{1}, tag{1});
        co_await world.send(signal, to{1}, tag{2});
        co_await sending;
        continue;
      }
      std::vector<std::uint32_t> in(sent.size() + 3, 7);
      std::optional<operation<received>> receiving;
      if (when == asked::before) {
        receiving.emplace(world.recv(in, from{0}, tag{1}));
        co_await world.send(signal, to{0});
      }
      if (when == asked::in_the_middle) co_await world.probe(from{0}, tag{1});
      if (when == asked::after) co_await world.recv(signal, from{0}, tag{2});
      if (!receiving) receiving.emplace(world.recv(in, from{0}, tag{1}));
      const received got = co_await *receiving;
      if (when != asked::after) co_await world.recv(signal, from{0}, tag{2});
      harness::expect(got.count == sent.size(), "its length");
      harness::expect(std::equal(sent.begin(), sent.end(), in.begin()), "its bytes");
      harness::expect(in[sent.size()] == 7 && in.back() == 7, "nothing behind it");
    }
  }
  co_return 0;
}

/// More at a time than a receiver has room for, asked for in another order when all are announced.
task<int> many_at_once(world_type world) {
  constexpr std::size_t messages = 12;
  const int other = 1 - world.rank();
  const auto nth = [](std::size_t i, int of) {
    return values(3000004 + 4 * i, static_cast<std::uint32_t>(i) + 100 * static_cast<std::uint32_t>(of));
  };
  std::vector<std::vector<std::uint32_t>> out;
  for (std::size_t i = 0; i < messages; ++i) out.push_back(nth(i, world.rank()));
  for (int round = 0; round < 2; ++round) {
    std::vector<std::vector<std::uint32_t>> in(messages);
    std::vector<operation<>> sends;
    std::vector<operation<received>> receives;
    std::array<int, 1> signal{};
    std::array<int, 1> answer{};
    for (std::size_t i = 0; i < messages; ++i) sends.push_back(world.send(out[i], to{other}, tag{static_cast<int>(i)}));
    co_await world.exchange(signal, to{other}, answer, from{other}, tag{100});
    for (std::size_t k = 0; k < messages; ++k) {
      const std::size_t i = k * 5 % messages;
      in[i].resize(out[i].size());
      receives.push_back(world.recv(in[i], from{other}, tag{static_cast<int>(i)}));
    }
    for (auto& r : receives) co_await r;
    for (auto& s : sends) co_await s;
    for (std::size_t i = 0; i < messages; ++i) harness::expect(in[i] == nth(i, other), "one of many");
  }
  co_return 0;
}

/// What arrives is combined at once, in chunks, in the midst of which the first bytes end.
task<int> combined(world_type world) {
  for (const std::size_t bytes : lengths) {
    const std::vector<std::uint32_t> own = values(bytes, static_cast<std::uint32_t>(world.rank()));
    const std::vector<std::uint32_t> theirs = values(bytes, static_cast<std::uint32_t>(1 - world.rank()));
    std::vector<std::uint32_t> result(own.size());
    for (const bool late : {false, true}) {
      std::array<int, 1> signal{};
      if (world.rank() == 1) {
        auto reducing = world.reduce(own, result, sum{}, root{0});
        co_await world.send(signal, to{0}, tag{2});
        co_await reducing;
        continue;
      }
      if (late) co_await world.recv(signal, from{1}, tag{2});
      co_await world.reduce(own, result, sum{}, root{0});
      if (!late) co_await world.recv(signal, from{1}, tag{2});
      for (std::size_t i = 0; i < own.size(); ++i) harness::expect(result[i] == own[i] + theirs[i], "a sum");
    }
  }
  co_return 0;
}

/// Every rank's own block, which is copied before, beside or behind the messages.
task<int> blocks(world_type world) {
  constexpr std::size_t bytes = 3000004;
  constexpr std::size_t n = bytes / sizeof(std::uint32_t);
  const auto ranks = static_cast<std::size_t>(world.size());
  const auto me = static_cast<std::size_t>(world.rank());
  const auto block_of = [](std::size_t from, std::size_t to) {
    return values(bytes, static_cast<std::uint32_t>(10 * from + to));
  };
  const auto is_block = [](const std::vector<std::uint32_t>& all, std::size_t at, const std::vector<std::uint32_t>& b) {
    return std::equal(b.begin(), b.end(), all.begin() + static_cast<std::ptrdiff_t>(at * n));
  };
  std::vector<std::uint32_t> whole;
  for (std::size_t k = 0; k < ranks; ++k) {
    const auto b = block_of(me, k);
    whole.insert(whole.end(), b.begin(), b.end());
  }
  std::vector<std::uint32_t> all(ranks * n);
  std::vector<std::uint32_t> one(n);
  for (int r = 0; r < world.size(); ++r) {
    const auto from_root = static_cast<std::size_t>(r);
    one.assign(n, 0);
    co_await world.scatter(whole, one, root{r});
    harness::expect(one == block_of(from_root, me), "a scattered block");
    all.assign(ranks * n, 0);
    co_await world.gather(one, all, root{r});
    for (std::size_t k = 0; k < ranks && r == world.rank(); ++k) {
      harness::expect(is_block(all, k, block_of(from_root, k)), "a gathered block");
    }
  }
  co_await world.all_gather(one, all);
  for (std::size_t k = 0; k < ranks; ++k)
    harness::expect(is_block(all, k, block_of(ranks - 1, k)), "everybody's block");
  co_await world.all_to_all(whole, all);
  for (std::size_t k = 0; k < ranks; ++k) harness::expect(is_block(all, k, block_of(k, me)), "a block of each");
  co_return 0;
}

/// A message that follows in the same stream, and must be whole.
task<> next_message(world_type& world, std::uint32_t number) {
  const auto sent = values(2500000, number);
  if (world.rank() == 0) {
    co_await world.send(sent, to{1});
  } else {
    std::vector<std::uint32_t> in(sent.size());
    co_await world.recv(in, from{0});
    harness::expect(in == sent, "the next message, whole");
  }
}

/// A receive without the room for a message some of whose bytes are here: both ranks get to know, and the stream goes on.
task<int> too_small(world_type world) {
  std::uint32_t number = 0;
  for (const std::size_t bytes : lengths) {
    for (const asked when : {asked::before, asked::in_the_middle, asked::after}) {
      std::optional<world_type> copy(co_await world.duplicate());
      auto data = values(world.rank() == 0 ? bytes : bytes - 4, ++number);
      std::array<int, 1> signal{};
      errc ended = errc::timed_out;
      try {
        if (world.rank() == 0) {
          if (when == asked::before) co_await world.recv(signal, from{1});
          auto sending = copy->send(data, to{1});
          co_await world.send(signal, to{1});
          co_await sending;
        } else {
          std::optional<operation<received>> receiving;
          if (when == asked::before) {
            receiving.emplace(copy->recv(data, from{0}));
            co_await world.send(signal, to{0});
          }
          if (when == asked::in_the_middle) {
            co_await copy->probe(from{0});
            receiving.emplace(copy->recv(data, from{0}));
          }
          co_await world.recv(signal, from{0});
          if (!receiving) receiving.emplace(copy->recv(data, from{0}));
          co_await *receiving;
        }
        co_await copy->barrier();
      } catch (const error& e) {
        ended = static_cast<errc>(e.code().value());
      }
      harness::expect(ended == errc::truncated, "truncated");
      data.assign(data.size(), 1);
      copy.reset();
      co_await next_message(world, number);
    }
  }
  co_return 0;
}

/// One end drops its operation after some turns, with its buffer: both get an error, unless it was over by then.
task<int> dropped(world_type world, int who) {
  for (const std::size_t bytes : {std::size_t{1048576}, std::size_t{3000004}, std::size_t{9437188}}) {
    for (int turns = 0; turns < 12; ++turns) {
      std::optional<world_type> copy(co_await world.duplicate());
      auto data = values(bytes, 5);
      std::optional<operation<>> sending;
      std::optional<operation<received>> receiving;
      if (world.rank() == 0) {
        sending.emplace(copy->send(data, to{1}));
      } else {
        receiving.emplace(copy->recv(data, from{0}));
      }
      try {
        if (world.rank() == who) {
          for (int i = 0; i < turns; ++i) (void)world.poll();
          sending.reset();
          receiving.reset();
          data.assign(data.size(), 8);
        }
        if (sending) co_await *sending;
        if (receiving) co_await *receiving;
        co_await copy->barrier();
      } catch (const error& e) {
        harness::expect(e.condition() == errc::aborted, e.what());
      }
      if (world.rank() == who) {
        harness::expect(std::all_of(data.begin(), data.end(), [](std::uint32_t v) { return v == 8; }),
                        "nothing is written to a buffer whose operation was dropped");
      }
      copy.reset();
      co_await next_message(world, static_cast<std::uint32_t>(turns));
    }
  }
  co_return 0;
}

}  // namespace

TEST_CASE("announced messages: every length, asked for before it comes, in the middle and after") {
  over_sockets(2, all_lengths);
}

TEST_CASE("announced messages: more than the receiver has room for, in another order") {
  over_sockets(2, many_at_once);
}

TEST_CASE("announced messages: combined while they arrive") { over_sockets(2, combined); }

TEST_CASE("announced messages: of collectives, with every rank's own block") { over_sockets(3, blocks); }

TEST_CASE("announced messages: a receive without room for one that is arriving") { over_sockets(2, too_small); }

TEST_CASE("announced messages: either end drops its operation in the middle") {
  for (const int who : {0, 1}) {
    CAPTURE(who);
    over_sockets(2, [who](world_type world) { return dropped(std::move(world), who); });
  }
}
