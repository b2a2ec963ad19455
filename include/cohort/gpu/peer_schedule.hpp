// SPDX-License-Identifier: BSL-1.0
// The collectives of ranks that read each other's device memory, as phases: what one rank enqueues in each, given the
// buffers of all. Between two phases every rank waits for every other, by whatever way it has; local_ranks.hpp (one
// process) and ipc_ranks.hpp (several) carry them out. Nothing in here touches a device: the rank does.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cohort {

/// Rank r's buffer at [r], by the address that it has in this process.
template <class T>
using peer_buffers = std::span<const device_span<T>>;

namespace detail {

[[nodiscard]] inline std::size_t peer_index(int rank) noexcept { return static_cast<std::size_t>(rank); }

inline void expect_elements(std::string_view operation, const char* name, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw error(errc::invalid_argument, std::string(operation) + ": a buffer of " + name + " has " +
                                          std::to_string(found) + " elements, expected " + std::to_string(expected) +
                                          " on every rank");
}
/// Result: the count of each buffer
/// Errors: invalid_argument (as many buffers as ranks, one size)
template <class T>
[[nodiscard]] std::size_t check_peers(std::string_view operation, const char* name, peer_buffers<T> all, int ranks) {
  if (all.size() != peer_index(ranks)) {
    throw error(errc::invalid_argument, std::string(operation) + ": " + name + " has " + std::to_string(all.size()) +
                                            " buffers, expected " + std::to_string(ranks) + ", one for each rank");
  }
  for (const device_span<T>& b : all) expect_elements(operation, name, b.size(), all[0].size());
  return all[0].size();
}
inline void check_peer_root(std::string_view operation, root r, int ranks) {
  if (r.rank >= 0 && r.rank < ranks) return;
  throw error(errc::invalid_argument, std::string(operation) + ": root " + std::to_string(r.rank) + ": expected 0.." +
                                          std::to_string(ranks - 1));
}

/// Rank r's own part of a vector that all of them have: whole vectors of 16 elements for every rank but the last.
struct peer_part {
  std::size_t at;
  std::size_t count;

  peer_part(std::size_t all, int rank, int ranks) noexcept {
    const std::size_t part = ((all + peer_index(ranks) - 1) / peer_index(ranks) + 15) / 16 * 16;
    at = std::min(all, peer_index(rank) * part);
    count = std::min(part, all - at);
  }
};

template <class T>
[[nodiscard]] fold_sources<T> peer_sources(peer_buffers<T> in, std::size_t at) {
  fold_sources<T> from;
  from.ranks = static_cast<int>(in.size());
  for (std::size_t r = 0; r < in.size(); ++r) from.listed[r] = in[r].data() + at;
  return from;
}

// A schedule has a name, a number of phases, check(ranks), which throws invalid_argument, and a call for each phase. `me`
// has rank(), size(), fold(from, out, count, op) and copy(from, to, count).

/// Each rank folds its own part of the vector in place, then copies the others'.
template <class T, class Op>
struct peer_all_reduce {
  static constexpr std::string_view name = "all_reduce";
  static constexpr int phases = 2;
  peer_buffers<T> inout;
  Op op;

  void check(int ranks) const { static_cast<void>(check_peers("all_reduce", "inout", inout, ranks)); }
  template <class Rank>
  void operator()(int phase, const Rank& me) const {
    const std::size_t count = inout[0].size();
    T* const mine = inout[peer_index(me.rank())].data();
    if (phase == 0) {
      const peer_part part(count, me.rank(), me.size());
      return me.fold(peer_sources(inout, part.at), mine + part.at, part.count, op);
    }
    for (int from = 0; from < me.size(); ++from) {
      const peer_part part(count, from, me.size());
      if (from != me.rank()) me.copy(inout[peer_index(from)].data() + part.at, mine + part.at, part.count);
    }
  }
};

template <class T, class Op>
struct peer_reduce_scatter {
  static constexpr std::string_view name = "reduce_scatter";
  static constexpr int phases = 1;
  peer_buffers<T> in;
  peer_buffers<T> out;
  Op op;

  void check(int ranks) const {
    const std::size_t block = check_peers("reduce_scatter", "out", out, ranks);
    expect_elements("reduce_scatter", "in", check_peers("reduce_scatter", "in", in, ranks), block * peer_index(ranks));
  }
  template <class Rank>
  void operator()(int, const Rank& me) const {
    const device_span<T> mine = out[peer_index(me.rank())];
    me.fold(peer_sources(in, peer_index(me.rank()) * mine.size()), mine.data(), mine.size(), op);
  }
};

/// `out` is looked at on the root alone.
template <class T, class Op>
struct peer_reduce {
  static constexpr std::string_view name = "reduce";
  static constexpr int phases = 1;
  peer_buffers<T> in;
  device_span<T> out;
  Op op;
  root to_rank;

  void check(int ranks) const {
    static_cast<void>(check_peers("reduce", "in", in, ranks));
    check_peer_root("reduce", to_rank, ranks);
  }
  void check_out() const { expect_elements("reduce", "out", out.size(), in[0].size()); }
  template <class Rank>
  void operator()(int, const Rank& me) const {
    if (me.rank() == to_rank.rank) me.fold(peer_sources(in, 0), out.data(), out.size(), op);
  }
};

template <class T>
struct peer_broadcast {
  static constexpr std::string_view name = "broadcast";
  static constexpr int phases = 1;
  peer_buffers<T> inout;
  root from_rank;

  void check(int ranks) const {
    static_cast<void>(check_peers("broadcast", "inout", inout, ranks));
    check_peer_root("broadcast", from_rank, ranks);
  }
  template <class Rank>
  void operator()(int, const Rank& me) const {
    if (me.rank() == from_rank.rank) return;
    const device_span<T> mine = inout[peer_index(me.rank())];
    me.copy(inout[peer_index(from_rank.rank)].data(), mine.data(), mine.size());
  }
};

template <class T>
struct peer_all_gather {
  static constexpr std::string_view name = "all_gather";
  static constexpr int phases = 1;
  peer_buffers<T> in;
  peer_buffers<T> out;

  void check(int ranks) const {
    const std::size_t block = check_peers("all_gather", "in", in, ranks);
    expect_elements("all_gather", "out", check_peers("all_gather", "out", out, ranks), block * peer_index(ranks));
  }
  template <class Rank>
  void operator()(int, const Rank& me) const {
    T* const mine = out[peer_index(me.rank())].data();
    for (std::size_t from = 0; from < in.size(); ++from) {
      me.copy(in[from].data(), mine + from * in[from].size(), in[from].size());
    }
  }
};

template <class T>
struct peer_all_to_all {
  static constexpr std::string_view name = "all_to_all";
  static constexpr int phases = 1;
  peer_buffers<T> in;
  peer_buffers<T> out;

  void check(int ranks) const {
    const std::size_t count = check_peers("all_to_all", "in", in, ranks);
    expect_elements("all_to_all", "out", check_peers("all_to_all", "out", out, ranks), count);
    expect_elements("all_to_all", "in", count, count / peer_index(ranks) * peer_index(ranks));
  }
  template <class Rank>
  void operator()(int, const Rank& me) const {
    const std::size_t block = in[0].size() / in.size();
    T* const mine = out[peer_index(me.rank())].data();
    for (std::size_t from = 0; from < in.size(); ++from) {
      me.copy(in[from].data() + peer_index(me.rank()) * block, mine + from * block, block);
    }
  }
};

}  // namespace detail
}  // namespace cohort
