// SPDX-License-Identifier: BSL-1.0
// Parts of transfers.cpp: messages that are sent one right after the other, of the lengths at which they are sent otherwise: copied
// in one piece or in parts, or behind their headers; when they are asked for late, in another order, or never.
#pragma once

#include "parts.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mpi_test {

/// The lengths in ints at which a message gets one part more, or is not sent in parts any more.
inline std::vector<std::size_t> lengths_in_parts() {
  using cohort::transport::mpi_endpoint;
  std::vector<std::size_t> all;
  for (std::size_t parts = 1; parts * mpi_endpoint::longest_part <= mpi_endpoint::eager_limit; ++parts) {
    const std::size_t most = parts * mpi_endpoint::longest_part / sizeof(int);
    all.insert(all.end(), {most - 1, most, most + 1});
  }
  return all;
}

inline int number_of(std::size_t length, std::size_t i) { return static_cast<int>(length * 7919 + i); }

/// Received by ranks that wait for it already or have not asked yet, from one rank or any, as one vector or as many; with
/// others between them that are short, and not overtaken.
inline task<> in_parts(world_type world) {
  if (world.size() < 2) co_return;
  const auto lengths = lengths_in_parts();
  const int receiver = last(world);
  const auto senders = static_cast<std::size_t>(receiver);
  for (const bool asked : {false, true}) {
    if (world.rank() != receiver) {
      if (asked) expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
      std::vector<std::vector<int>> out;
      for (const std::size_t n : lengths) {
        out.emplace_back(n);
        for (std::size_t i = 0; i < n; ++i) out.back()[i] = number_of(n, i);
        out.emplace_back(1, static_cast<int>(n));
      }
      std::vector<cohort::operation<>> sends;
      for (std::size_t i = 0; i < out.size(); ++i) {
        sends.push_back(world.send(out[i], cohort::to{receiver}, cohort::tag{static_cast<int>(i % 2)}));
      }
      if (!asked) expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
      for (auto& op : sends) co_await op;
    } else {
      if (!asked) expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
      std::vector<std::vector<int>> in(2 * lengths.size() * senders);
      std::vector<cohort::operation<cohort::received>> receives;
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i].assign(i % 2 == 0 ? lengths.back() : 1, -1);
        receives.push_back(world.recv(in[i], cohort::from_any, cohort::tag{static_cast<int>(i % 2)}));
      }
      if (asked) expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
      std::vector<std::size_t> next(senders, 0);
      std::vector<std::size_t> next_short(senders, 0);
      for (std::size_t i = 0; i < receives.size(); i += 2) {
        const auto got = co_await receives[i];
        const std::size_t n = lengths[next[static_cast<std::size_t>(got.source)]++];
        expect(got.count == n, std::to_string(n) + " elements, found " + std::to_string(got.count));
        for (std::size_t e = 0; e < n; ++e) {
          expect(in[i][e] == number_of(n, e), "element " + std::to_string(e) + " of " + std::to_string(n));
        }
        const auto behind = co_await receives[i + 1];
        const std::size_t in_turn = lengths[next_short[static_cast<std::size_t>(behind.source)]++];
        expect(behind.count == 1 && in[i + 1].front() == static_cast<int>(in_turn), "the short ones in their order");
      }
    }
    auto end = world.barrier();
    co_await end;
  }
  // Each rank's vectors one behind the other in a message: cut where no vector ends.
  for (const std::size_t n : lengths) {
    const std::size_t whole = n / (2 * static_cast<std::size_t>(world.size())) + 1;
    std::vector<int> mine(whole, world.rank());
    std::vector<std::vector<int>> all(static_cast<std::size_t>(world.size()), std::vector<int>(whole, -1));
    auto op = world.all_gather(mine, all);
    co_await op;
    for (std::size_t r = 0; r < all.size(); ++r) {
      expect(all[r] == std::vector<int>(whole, static_cast<int>(r)), "vector of rank " + std::to_string(r));
    }
  }
}

/// A receive that is dropped when some parts are in its buffer: the others go nowhere, and what comes next is whole.
inline task<> dropped_between_parts(world_type world) {
  if (world.size() < 2) co_return;
  constexpr std::size_t count = cohort::transport::mpi_endpoint::eager_limit / sizeof(int);
  for (int polls = 0; polls < 40; ++polls) {
    auto copying = world.duplicate();
    std::optional<world_type> copy(co_await copying);
    std::vector<int> v(count, polls);
    if (world.rank() == 0) {
      auto op = copy->send(v, cohort::to{1});
      auto outcome = cohort::as_result(std::move(op));
      (void)co_await outcome;
    } else if (world.rank() == 1) {
      std::vector<int> in(count, -1);
      {
        auto op = copy->recv(in, cohort::from{0});
        for (int i = 0; i < polls; ++i) world.poll();
      }
      std::vector<int>().swap(in);
    }
    copy.reset();
    if (world.rank() == 0) {
      auto op = world.send(v, cohort::to{1});
      co_await op;
    } else if (world.rank() == 1) {
      std::vector<int> in(count, -1);
      auto op = world.recv(in, cohort::from{0});
      co_await op;
      expect(in == v, "the next message whole, after " + std::to_string(polls) + " polls");
    }
  }
  auto end = world.barrier();
  co_await end;
}

/// Several sent one right after the other, and dropped while some of them have been asked for and others have not: their buffers are
/// the caller's again, and what comes next is whole.
inline task<> dropped_in_a_row(world_type world, std::size_t count) {
  if (world.size() < 2) co_return;
  constexpr std::size_t messages = 5;
  for (int polls = 0; polls < 20; ++polls) {
    auto copying = world.duplicate();
    std::optional<world_type> copy(co_await copying);
    std::vector<std::vector<int>> all(messages, std::vector<int>(count, polls));
    if (world.rank() == 0) {
      std::vector<cohort::operation<>> sends;
      for (auto& each : all) sends.push_back(copy->send(each, cohort::to{1}));
      for (int i = 0; i < polls; ++i) world.poll();
    } else if (world.rank() == 1) {
      for (std::size_t i = 0; i < messages / 2; ++i) {
        auto op = copy->recv(all[i], cohort::from{0});
        auto outcome = cohort::as_result(std::move(op));
        (void)co_await outcome;
      }
    }
    for (auto& each : all) std::vector<int>(count, -1).swap(each);
    copy.reset();
    for (auto& each : all) {
      if (world.rank() == 0) {
        each.assign(count, 1000 + polls);
        auto op = world.send(each, cohort::to{1});
        co_await op;
      } else if (world.rank() == 1) {
        auto op = world.recv(each, cohort::from{0});
        co_await op;
        expect(each == std::vector<int>(count, 1000 + polls),
               "the next whole, after " + std::to_string(polls) + " polls");
      }
    }
  }
  auto end = world.barrier();
  co_await end;
}
inline constexpr std::size_t most_copied = cohort::transport::mpi_endpoint::eager_limit / sizeof(int);
inline task<> copied_dropped_in_a_row(world_type world) { return dropped_in_a_row(std::move(world), most_copied); }
inline task<> long_dropped_in_a_row(world_type world) { return dropped_in_a_row(std::move(world), most_copied + 1); }

}  // namespace mpi_test
