// SPDX-License-Identifier: BSL-1.0
// The roles of integers: a root, a destination, a source and a tag are different types, so that a call reads
// as a sentence and a swapped argument does not compile. Used by every function of communicator.hpp.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <ratio>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

/// The members of a subgroup, by their ranks in the communicator that it is made of: `ranks{2, 4, 6}`. The order of the
/// list is the order of the ranks of the new group.
class ranks {
 public:
  // Not std::initializer_list: g++ 12 cannot compile one inside a co_await expression.
  template <std::same_as<int>... Rank>
  explicit ranks(Rank... each) : list_{each...} {}
  template <class Range>
    requires(!std::same_as<std::remove_cvref_t<Range>, ranks> && !std::same_as<std::remove_cvref_t<Range>, int> &&
             requires(Range& r) { *r.begin() + 1; r.end(); })
  explicit ranks(const Range& all) {
    for (const auto r : all) list_.push_back(static_cast<int>(r));
  }
  [[nodiscard]] const std::vector<int>& list() const noexcept { return list_; }

 private:
  std::vector<int> list_;
};

/// Ranks that give `split` the same color become one group; `no_color` joins none.
struct color {
  int value;
  constexpr explicit color(int v) noexcept : value(v) {}
};
inline constexpr color no_color{-1};

/// The order of ranks in a group that `split` makes; ties keep the order that they have.
struct key {
  int value;
  constexpr explicit key(int v) noexcept : value(v) {}
};

/// Option of the calls that make a communicator: the name that its errors use.
struct named {
  std::string name;
  explicit named(std::string n) noexcept : name(std::move(n)) {}
};

/// The value that stands before rank 0's in an exclusive_scan.
template <class T>
struct initial {
  T value;
  constexpr explicit initial(T v) : value(std::move(v)) {}
};

/// Which rank a message may come from, and under which tag.
template <class S>
concept message_source = std::same_as<std::remove_cvref_t<S>, from> || std::same_as<std::remove_cvref_t<S>, from_any_t>;
template <class L>
concept message_label = std::same_as<std::remove_cvref_t<L>, tag> || std::same_as<std::remove_cvref_t<L>, any_tag_t>;

/// What a receive has received.
struct received {
  int source = -1;        ///< rank of the sender, in the communicator of the receive
  int tag = 0;            ///< the sender's tag
  std::size_t count = 0;  ///< elements that arrived, at most the size of the buffer
  friend constexpr bool operator==(const received&, const received&) = default;
};

/// Per-call option: fail with `errc::timed_out` when the operation has not completed after this long. A duration too long
/// for the clock means never.
struct timeout {
  std::chrono::nanoseconds after;
  template <class Rep, class Period>
  constexpr explicit timeout(std::chrono::duration<Rep, Period> d) noexcept : after(at_most_the_longest(d)) {}

 private:
  template <class Rep, class Period>
  [[nodiscard]] static constexpr std::chrono::nanoseconds at_most_the_longest(
      std::chrono::duration<Rep, Period> d) noexcept {
    using std::chrono::nanoseconds;
    using any_length = std::chrono::duration<double, std::nano>;
    if (any_length(d) >= any_length(nanoseconds::max())) return nanoseconds::max();
    if (any_length(d) <= any_length(nanoseconds::min())) return nanoseconds::min();
    return std::chrono::duration_cast<nanoseconds>(d);
  }
};

/// Per-call option: a request to stop cancels the operation, which aborts its communicator.
struct stop {
  std::stop_token token;
  explicit stop(std::stop_token t) noexcept : token(std::move(t)) {}
};

template <class O>
concept group_option = std::same_as<std::remove_cvref_t<O>, timeout> || std::same_as<std::remove_cvref_t<O>, stop> ||
    std::same_as<std::remove_cvref_t<O>, named>;

template <class O>
concept call_option = std::same_as<std::remove_cvref_t<O>, timeout> || std::same_as<std::remove_cvref_t<O>, stop>;

}  // namespace cohort
