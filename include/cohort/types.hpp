// SPDX-License-Identifier: BSL-1.0
// The roles of integers: a root, a destination, a source and a tag are different types, so that a call reads
// as a sentence and a swapped argument does not compile. Used by every function of communicator.hpp.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace cohort {

/// The rank that a rooted collective starts from or ends at.
struct root {
  int rank;
  constexpr explicit root(int r) noexcept : rank(r) {}
};

/// The destination of a message.
struct to {
  int rank;
  constexpr explicit to(int r) noexcept : rank(r) {}
};

/// The source of a message: one rank, or `from_any`.
struct from {
  int rank;
  constexpr explicit from(int r) noexcept : rank(r) {}
};
struct from_any_t {};
inline constexpr from_any_t from_any{};

/// The label that separates streams of messages between two ranks; 0 .. 2^31-1.
struct tag {
  int value;
  constexpr explicit tag(int v) noexcept : value(v) {}
};
struct any_tag_t {};
inline constexpr any_tag_t any_tag{};

/// What a receive has received.
struct received {
  int source = -1;        ///< rank of the sender, in the communicator of the receive
  int tag = 0;            ///< the sender's tag
  std::size_t count = 0;  ///< elements that arrived, at most the size of the buffer
  friend constexpr bool operator==(const received&, const received&) = default;
};

/// Per-call option: fail with `errc::timed_out` when the operation has not completed after this long.
struct timeout {
  std::chrono::nanoseconds after;
  template <class Rep, class Period>
  constexpr explicit timeout(std::chrono::duration<Rep, Period> d) noexcept
      : after(std::chrono::duration_cast<std::chrono::nanoseconds>(d)) {}
};

/// Per-call option: a request to stop cancels the operation, which aborts its communicator.
struct stop {
  std::stop_token token;
  explicit stop(std::stop_token t) noexcept : token(std::move(t)) {}
};

template <class O>
concept call_option = std::same_as<std::remove_cvref_t<O>, timeout> || std::same_as<std::remove_cvref_t<O>, stop>;

}  // namespace cohort
