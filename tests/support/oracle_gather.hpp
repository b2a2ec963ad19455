// SPDX-License-Identifier: BSL-1.0
// The oracle of what moves whole blocks: broadcast, scatter, gather, all_gather and their forms in _v.
#pragma once

#include "oracle.hpp"

namespace oracle {

/// How the blocks of all ranks are passed.
enum class shape {
  flat,        ///< one buffer
  in_place,    ///< one buffer, in which the rank's own block is the input as well
  list,        ///< a buffer for each rank
  counts,      ///< _v: one buffer, cut by counts
  negotiated,  ///< _v: the receivers learn the counts
};

[[nodiscard]] inline const char* text_of(shape form) {
  constexpr std::array<const char*, 5> names{"", " in place", " with a list", " with counts",
                                             " with negotiated counts"};
  return names[static_cast<std::size_t>(form)];
}

[[nodiscard]] inline std::size_t sum_of(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

/// The blocks of all ranks, one after the other.
template <class T>
[[nodiscard]] std::vector<T> tokens_of_all(std::uint64_t seed, const std::vector<std::size_t>& counts) {
  std::vector<T> all;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const std::vector<T> block = tokens<T>(seed, static_cast<int>(r), counts[r]);
    all.insert(all.end(), block.begin(), block.end());
  }
  return all;
}

/// `counts[r]` elements for rank r, in one buffer and as a list of its parts.
template <class T>
[[nodiscard]] std::vector<guarded<T>> list_of(const std::vector<std::size_t>& counts) {
  std::vector<guarded<T>> list;
  for (const std::size_t count : counts) list.emplace_back(count);
  return list;
}
[[nodiscard]] inline std::size_t begin_of(const std::vector<std::size_t>& counts, std::size_t rank) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
}

/// Counts that differ from rank to rank, some of them 0; `large` is that of one rank.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> ragged_counts(int ranks, std::size_t large) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<std::vector<std::size_t>> all(4, std::vector<std::size_t>(p, 0));
  for (std::size_t r = 0; r < p; ++r) {
    all[1][r] = (r * 5 + 3) % 7 % 5;
    all[2][r] = r + 1 == p ? 11 : 0;
    all[3][r] = r == p / 2 ? large : r;
  }
  return all;
}

template <class T, class Backend>
task<> check_broadcast(checker<Backend>& c, std::size_t count, int root, std::uint64_t seed) {
  std::string what = title<T>("broadcast", count) + " from rank " + std::to_string(root);
  const std::vector<T> expected = tokens<T>(seed, root, count);
  guarded<T> buffer(count);
  if (c.rank() == root) buffer.assign(expected);
  auto op = c.world().broadcast(buffer, cohort::root{root});
  c.called(op, what);
  co_await op;
  c.holds(what, buffer, std::span<const T>(expected));
}

template <class T, class Backend>
task<> check_broadcast_value(checker<Backend>& c, int root, std::uint64_t seed) {
  std::string what = title<T>("broadcast", 1, " of a value") + " from rank " + std::to_string(root);
  const T expected = token<T>(seed, root, 0);
  const T mine = token<T>(seed, c.rank(), 0);
  auto op = c.world().broadcast(mine, cohort::root{root});
  c.called(op, what);
  const T found = co_await op;
  c.same(what, std::span<const T>(&found, 1), std::span<const T>(&expected, 1));
}

/// Ranks that are not the root pass a list that is empty, or no counts, or a buffer that has nothing to do with it.
template <class T, class Backend>
task<> check_scatter(checker<Backend>& c, std::vector<std::size_t> counts, int root, shape form, std::uint64_t seed) {
  std::string what = title<T>("scatter", sum_of(counts), text_of(form)) + " from rank " + std::to_string(root);
  const bool here = c.rank() == root;
  const std::vector<T> all = tokens_of_all<T>(seed, counts);
  const std::vector<T> expected = tokens<T>(seed, c.rank(), counts[c.own()]);
  guarded<T> in(here ? all.size() : 3);
  if (here) in.assign(all);
  guarded<T> out(counts[c.own()]);
  std::vector<std::vector<T>> list;
  for (std::size_t r = 0; here && r < c.ranks(); ++r) list.push_back(tokens<T>(seed, static_cast<int>(r), counts[r]));
  const std::vector<std::size_t> known = here ? counts : std::vector<std::size_t>{};
  if (form == shape::negotiated) {
    auto op = c.world().scatter_v(in, known, cohort::root{root});
    c.called(op, what);
    const std::vector<T> found = co_await op;
    c.same(what, std::span<const T>(found), std::span<const T>(expected));
  } else {
    auto op = form == shape::flat   ? c.world().scatter(in, out, cohort::root{root})
              : form == shape::list ? c.world().scatter(list, out, cohort::root{root})
                                    : c.world().scatter_v(in, known, out, cohort::root{root});
    c.called(op, what);
    co_await op;
    c.holds(what, out, std::span<const T>(expected));
  }
  if (here) {
    c.unchanged(what, in, std::span<const T>(all));
  } else {
    c.untouched(what, in);
  }
}

template <class T, class Backend>
task<> check_scatter_value(checker<Backend>& c, int root, std::uint64_t seed) {
  std::string what = title<T>("scatter", 1, " of values") + " from rank " + std::to_string(root);
  const std::vector<T> all = c.rank() == root ? tokens<T>(seed, root, c.ranks()) : std::vector<T>{};
  const T expected = token<T>(seed, root, c.own());
  auto op = c.world().scatter(all, cohort::root{root});
  c.called(op, what);
  const T found = co_await op;
  c.same(what, std::span<const T>(&found, 1), std::span<const T>(&expected, 1));
}

template <class T, class Backend>
task<> check_gather(checker<Backend>& c, std::vector<std::size_t> counts, int root, shape form, std::uint64_t seed) {
  std::string what = title<T>("gather", sum_of(counts), text_of(form)) + " to rank " + std::to_string(root);
  const bool here = c.rank() == root;
  const std::vector<T> expected = tokens_of_all<T>(seed, counts);
  const std::vector<T> mine = tokens<T>(seed, c.rank(), counts[c.own()]);
  const guarded<T> in(mine);
  guarded<T> out(here ? expected.size() : 3);
  std::vector<guarded<T>> list = here ? list_of<T>(counts) : std::vector<guarded<T>>{};
  const std::vector<std::size_t> known = here ? counts : std::vector<std::size_t>{};
  const bool shared = here && form == shape::in_place;
  const std::span<T> own = here ? out.part(begin_of(counts, c.own()), mine.size()) : std::span<T>{};
  if (shared) std::copy(mine.begin(), mine.end(), own.begin());
  const std::span<const T> from = shared ? std::span<const T>(own) : std::span<const T>(in.data(), in.size());
  if (form == shape::negotiated) {
    auto op = c.world().gather_v(from, cohort::root{root});
    c.called(op, what);
    const cohort::ragged<T> found = co_await op;
    c.same(what, std::span<const T>(found.values()), here ? std::span<const T>(expected) : std::span<const T>{});
    for (int r = 0; r < found.size(); ++r) {
      c.expect(found.count(r) == counts[static_cast<std::size_t>(r)], what, "the counts of all ranks");
    }
    c.expect(found.size() == (here ? c.size() : 0), what, "a block for each rank at the root, and none elsewhere");
  } else {
    auto op = form == shape::list     ? c.world().gather(from, list, cohort::root{root})
              : form == shape::counts ? c.world().gather_v(from, out, known, cohort::root{root})
                                      : c.world().gather(from, out, cohort::root{root});
    c.called(op, what);
    co_await op;
    for (std::size_t r = 0; r < list.size() && form == shape::list; ++r) {
      c.holds(what, list[r], std::span<const T>(expected).subspan(begin_of(counts, r), counts[r]));
    }
    if (here && form != shape::list) c.holds(what, out, std::span<const T>(expected));
    if (!here) c.untouched(what, out);
  }
  c.unchanged(what, in, std::span<const T>(mine));
}

template <class T, class Backend>
task<> check_gather_value(checker<Backend>& c, int root, std::uint64_t seed) {
  std::string what = title<T>("gather", 1, " of values") + " to rank " + std::to_string(root);
  const std::vector<std::size_t> ones(c.rank() == root ? c.ranks() : 0, 1);
  const std::vector<T> expected = tokens_of_all<T>(seed, ones);
  auto op = c.world().gather(token<T>(seed, c.rank(), 0), cohort::root{root});
  c.called(op, what);
  const std::vector<T> found = co_await op;
  c.same(what, std::span<const T>(found), std::span<const T>(expected));
}

template <class T, class Backend>
task<> check_all_gather(checker<Backend>& c, std::vector<std::size_t> counts, shape form, std::uint64_t seed) {
  std::string what = title<T>("all_gather", sum_of(counts), text_of(form));
  const std::vector<T> expected = tokens_of_all<T>(seed, counts);
  const std::vector<T> mine = tokens<T>(seed, c.rank(), counts[c.own()]);
  const guarded<T> in(mine);
  guarded<T> out(expected.size());
  std::vector<guarded<T>> list = list_of<T>(counts);
  const std::span<T> own = out.part(begin_of(counts, c.own()), mine.size());
  if (form == shape::in_place) std::copy(mine.begin(), mine.end(), own.begin());
  const bool even = std::all_of(counts.begin(), counts.end(), [&](std::size_t n) { return n == counts[0]; });
  const std::span<const T> from =
      form == shape::in_place ? std::span<const T>(own) : std::span<const T>(in.data(), in.size());
  if (form == shape::negotiated) {
    auto op = c.world().all_gather_v(from);
    c.called(op, what);
    const cohort::ragged<T> found = co_await op;
    c.same(what, std::span<const T>(found.values()), std::span<const T>(expected));
    c.expect(found.size() == c.size(), what, "a block for each rank");
    for (int r = 0; r < found.size(); ++r) {
      c.expect(found.count(r) == counts[static_cast<std::size_t>(r)], what, "the counts of all ranks");
    }
  } else {
    auto op = form == shape::list              ? c.world().all_gather(from, list)
              : form == shape::counts || !even ? c.world().all_gather_v(from, out, counts)
                                               : c.world().all_gather(from, out);
    c.called(op, what);
    co_await op;
    for (std::size_t r = 0; r < list.size() && form == shape::list; ++r) {
      c.holds(what, list[r], std::span<const T>(expected).subspan(begin_of(counts, r), counts[r]));
    }
    if (form != shape::list) c.holds(what, out, std::span<const T>(expected));
  }
  c.unchanged(what, in, std::span<const T>(mine));
}

template <class T, class Backend>
task<> check_all_gather_value(checker<Backend>& c, std::uint64_t seed) {
  std::string what = title<T>("all_gather", 1, " of values");
  const std::vector<T> expected = tokens_of_all<T>(seed, std::vector<std::size_t>(c.ranks(), 1));
  auto op = c.world().all_gather(token<T>(seed, c.rank(), 0));
  c.called(op, what);
  const std::vector<T> found = co_await op;
  c.same(what, std::span<const T>(found), std::span<const T>(expected));
}

// --- every algorithm, count, root and form of one element type

template <class T, class Backend>
task<> broadcast_matrix(checker<Backend>& c, std::vector<std::size_t> counts, std::vector<int> roots) {
  std::uint64_t seed = 1;
  for (const algorithm how : algorithms_of(operation_kind::broadcast)) {
    c.world().algorithms().override_with(operation_kind::broadcast, how);
    for (const int root : roots) {
      for (const std::size_t count : counts) {
        auto check = check_broadcast<T>(c, count, root, ++seed);
        co_await check;
      }
      auto value = check_broadcast_value<T>(c, root, ++seed);
      co_await value;
    }
  }
}

template <class T, class Backend>
task<> scatter_matrix(checker<Backend>& c, std::vector<std::size_t> counts, std::vector<int> roots, std::size_t large) {
  std::uint64_t seed = 1;
  for (const int root : roots) {
    for (const algorithm how : algorithms_of(operation_kind::scatter)) {
      c.world().algorithms().override_with(operation_kind::scatter, how);
      for (const std::size_t count : counts) {
        for (const shape form : {shape::flat, shape::list}) {
          auto check = check_scatter<T>(c, std::vector<std::size_t>(c.ranks(), count), root, form, ++seed);
          co_await check;
        }
      }
      auto value = check_scatter_value<T>(c, root, ++seed);
      co_await value;
    }
    for (const algorithm how : algorithms_of(operation_kind::scatter_v)) {
      c.world().algorithms().override_with(operation_kind::scatter_v, how);
      for (const std::vector<std::size_t>& uneven : ragged_counts(c.size(), large)) {
        for (const shape form : {shape::counts, shape::negotiated}) {
          auto check = check_scatter<T>(c, uneven, root, form, ++seed);
          co_await check;
        }
      }
    }
  }
}

template <class T, class Backend>
task<> gather_matrix(checker<Backend>& c, std::vector<std::size_t> counts, std::vector<int> roots, std::size_t large) {
  std::uint64_t seed = 1;
  for (const int root : roots) {
    for (const algorithm how : algorithms_of(operation_kind::gather)) {
      c.world().algorithms().override_with(operation_kind::gather, how);
      for (const std::size_t count : counts) {
        for (const shape form : {shape::flat, shape::in_place, shape::list}) {
          auto check = check_gather<T>(c, std::vector<std::size_t>(c.ranks(), count), root, form, ++seed);
          co_await check;
        }
      }
      auto value = check_gather_value<T>(c, root, ++seed);
      co_await value;
    }
    for (const algorithm how : algorithms_of(operation_kind::gather_v)) {
      c.world().algorithms().override_with(operation_kind::gather_v, how);
      for (const std::vector<std::size_t>& uneven : ragged_counts(c.size(), large)) {
        for (const shape form : {shape::counts, shape::negotiated}) {
          auto check = check_gather<T>(c, uneven, root, form, ++seed);
          co_await check;
        }
      }
    }
  }
}

template <class T, class Backend>
task<> all_gather_matrix(checker<Backend>& c, std::vector<std::size_t> counts, std::size_t large) {
  std::uint64_t seed = 1;
  for (const algorithm how : algorithms_of(operation_kind::all_gather)) {
    c.world().algorithms().override_with(operation_kind::all_gather, how);
    for (const std::size_t count : counts) {
      for (const shape form : {shape::flat, shape::in_place, shape::list}) {
        auto check = check_all_gather<T>(c, std::vector<std::size_t>(c.ranks(), count), form, ++seed);
        co_await check;
      }
    }
    auto value = check_all_gather_value<T>(c, ++seed);
    co_await value;
  }
  for (const algorithm how : algorithms_of(operation_kind::all_gather_v)) {
    c.world().algorithms().override_with(operation_kind::all_gather_v, how);
    for (const std::vector<std::size_t>& uneven : ragged_counts(c.size(), large)) {
      for (const shape form : {shape::counts, shape::in_place, shape::negotiated}) {
        auto check = check_all_gather<T>(c, uneven, form, ++seed);
        co_await check;
      }
    }
  }
}

}  // namespace oracle
