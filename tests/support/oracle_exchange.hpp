// SPDX-License-Identifier: BSL-1.0
// The oracle of all_to_all, all_to_all_v and barrier.
#pragma once

#include "oracle_gather.hpp"

#include <atomic>

namespace oracle {

/// How many elements rank i has for rank j.
using count_matrix = std::vector<std::vector<std::size_t>>;

[[nodiscard]] inline count_matrix equal_counts(int ranks, std::size_t count) {
  const auto p = static_cast<std::size_t>(ranks);
  return count_matrix(p, std::vector<std::size_t>(p, count));
}

/// Counts that differ from pair to pair and in the two directions of a pair, some of them 0.
[[nodiscard]] inline std::vector<count_matrix> ragged_matrices(int ranks, std::size_t large) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<count_matrix> all(4, equal_counts(ranks, 0));
  for (std::size_t i = 0; i < p; ++i) {
    for (std::size_t j = 0; j < p; ++j) {
      all[1][i][j] = (i * 7 + j * 3 + 2) % 11 % 6;
      all[2][i][j] = i == p / 2 ? 5 : 0;
      all[3][i][j] = (i + 1) % p == j ? large : i + j;
    }
  }
  return all;
}

/// The block that rank i has for rank j.
template <class T>
[[nodiscard]] std::vector<T> block_between(std::uint64_t seed, std::size_t i, std::size_t j, std::size_t count) {
  return tokens<T>(seed, static_cast<int>(i * 1000 + j), count);
}

template <class T, class Backend>
task<> check_all_to_all(checker<Backend>& c, count_matrix counts, shape form, std::uint64_t seed) {
  std::vector<std::size_t> sent;
  std::vector<std::size_t> got;
  std::vector<T> mine;
  std::vector<T> expected;
  std::vector<std::vector<T>> in_list;
  for (std::size_t r = 0; r < c.ranks(); ++r) {
    sent.push_back(counts[c.own()][r]);
    got.push_back(counts[r][c.own()]);
    in_list.push_back(block_between<T>(seed, c.own(), r, sent[r]));
    mine.insert(mine.end(), in_list[r].begin(), in_list[r].end());
    const std::vector<T> block = block_between<T>(seed, r, c.own(), got[r]);
    expected.insert(expected.end(), block.begin(), block.end());
  }
  std::string what = title<T>("all_to_all", expected.size(), text_of(form));
  const std::span<const T> wanted(expected);
  const guarded<T> in(mine);
  guarded<T> out(form == shape::list ? 0 : expected.size());
  std::vector<guarded<T>> out_list = list_of<T>(got);
  if (form == shape::negotiated) {
    auto op = c.world().all_to_all_v(in, sent);
    c.called(op, what);
    const cohort::ragged<T> found = co_await op;
    c.same(what, std::span<const T>(found.values()), wanted);
    c.expect(found.size() == c.size(), what, "a block for each rank");
    for (int r = 0; r < found.size(); ++r) {
      c.expect(found.count(r) == got[static_cast<std::size_t>(r)], what, "the counts of all ranks");
    }
  } else {
    auto op = form == shape::list   ? c.world().all_to_all(in_list, out_list)
              : form == shape::flat ? c.world().all_to_all(in, out)
                                    : c.world().all_to_all_v(in, sent, out, got);
    c.called(op, what);
    co_await op;
    if (form != shape::list) c.holds(what, out, wanted);
    for (std::size_t r = 0; r < c.ranks() && form == shape::list; ++r) {
      c.holds(what, out_list[r], wanted.subspan(begin_of(got, r), got[r]));
      c.same(what + ", the input after it", std::span<const T>(in_list[r]),
             std::span<const T>(mine).subspan(begin_of(sent, r), sent[r]));
    }
  }
  c.unchanged(what, in, std::span<const T>(mine));
}

template <class T, class Backend>
task<> all_to_all_matrix(checker<Backend>& c, std::vector<std::size_t> counts, std::size_t large) {
  std::uint64_t seed = 1;
  for (const algorithm how : algorithms_of(operation_kind::all_to_all)) {
    c.world().algorithms().override_with(operation_kind::all_to_all, how);
    for (const std::size_t count : counts) {
      for (const shape form : {shape::flat, shape::list}) {
        auto check = check_all_to_all<T>(c, equal_counts(c.size(), count), form, ++seed);
        co_await check;
      }
    }
  }
  for (const algorithm how : algorithms_of(operation_kind::all_to_all_v)) {
    c.world().algorithms().override_with(operation_kind::all_to_all_v, how);
    for (const count_matrix& uneven : ragged_matrices(c.size(), large)) {
      for (const shape form : {shape::counts, shape::list, shape::negotiated}) {
        auto check = check_all_to_all<T>(c, uneven, form, ++seed);
        co_await check;
      }
    }
  }
}

/// Nobody leaves before everybody has come. Needs: `arrivals` is shared by all ranks and was 0 when round 0 began
template <class Backend>
task<> check_barrier(checker<Backend>& c, std::atomic<int>& arrivals, int round) {
  std::string what = "barrier " + std::to_string(round);
  arrivals.fetch_add(1);
  auto op = c.world().barrier();
  c.called(op, what);
  co_await op;
  c.expect(arrivals.load() >= (round + 1) * c.size(), what, "every rank to have come");
}

template <class Backend>
task<> barrier_matrix(checker<Backend>& c, std::atomic<int>& arrivals, int rounds) {
  int round = 0;
  for (const algorithm how : algorithms_of(operation_kind::barrier)) {
    c.world().algorithms().override_with(operation_kind::barrier, how);
    for (int i = 0; i < rounds; ++i) {
      auto check = check_barrier(c, arrivals, round++);
      co_await check;
    }
  }
}

}  // namespace oracle
