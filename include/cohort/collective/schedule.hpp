// SPDX-License-Identifier: BSL-1.0
// The vocabulary of schedules: which block goes to whom in which round, as data, with no I/O and no types.
// Written by the headers in schedule/, chosen by select.hpp, carried out by execute.hpp.
#pragma once

#include <concepts>

namespace cohort::collective {

/// Which of an operation's buffers a region lies in.
enum class buffer : unsigned char {
  in,    ///< the caller's input, never written
  out,   ///< the caller's output
  work,  ///< scratch of the operation, `work_blocks()` blocks
};

/// A run of `count` consecutive blocks that starts at block `first`; it wraps around at the last block of its buffer.
struct region {
  buffer where = buffer::out;
  int first = 0;
  int count = 0;
  friend constexpr bool operator==(const region&, const region&) = default;
};

/// On which side of the functor the arriving operand stands.
enum class side : unsigned char {
  left,   ///< dst = op(arriving, dst): the arriving ranks are lower
  right,  ///< dst = op(dst, arriving): the arriving ranks are higher
};

/// What a schedule talks to. The local actions `copy(from, to)` and `reduce(from, into, side)` take place as if at
/// once, in the order in which they are emitted, and are emitted before any transfer of their round; `side` is that of `from`.
/// The transfers of a round are in flight together; a `receive_reduce` is combined when every transfer of its round is
/// complete, in the order of emission. Messages from one rank to another arrive in the order in which they were sent.
template <class Sink>
concept schedule_sink = requires(Sink& sink, int peer, region r, side s) {
  sink.send(peer, r);
  sink.receive(peer, r);
  sink.receive_reduce(peer, r, s);
  sink.copy(r, r);
  sink.reduce(r, r, s);
};

namespace detail {
struct null_sink {
  constexpr void send(int, region) const noexcept {}
  constexpr void receive(int, region) const noexcept {}
  constexpr void receive_reduce(int, region, side) const noexcept {}
  constexpr void copy(region, region) const noexcept {}
  constexpr void reduce(region, region, side) const noexcept {}
};
}  // namespace detail

/// One rank's part of a collective: `round(k, sink)` for k = 0 .. rounds()-1 says everything that it does.
template <class S>
concept schedule = requires(const S& s, int k, detail::null_sink& sink) {
  { s.rounds() } -> std::same_as<int>;       // the same on every rank
  { s.blocks() } -> std::same_as<int>;       // into how many blocks the vector is cut
  { s.work_blocks() } -> std::same_as<int>;  // how much scratch this rank needs
  s.round(k, sink);
};

/// The smallest q with 2^q >= n.
[[nodiscard]] constexpr int ceil_log2(int n) noexcept {
  int q = 0;
  while ((1LL << q) < n) ++q;
  return q;
}

/// The largest q with 2^q <= n, for n >= 1.
[[nodiscard]] constexpr int floor_log2(int n) noexcept {
  int q = 0;
  while ((2LL << q) <= n) ++q;
  return q;
}

/// n modulo p, never negative.
[[nodiscard]] constexpr int wrap(int n, int p) noexcept {
  const int m = n % p;
  return m < 0 ? m + p : m;
}

}  // namespace cohort::collective
