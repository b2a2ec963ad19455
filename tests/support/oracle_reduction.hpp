// SPDX-License-Identifier: BSL-1.0
// What reductions must give: the operands of all ranks, combined again here in every grouping that a schedule promises,
// and in double where it promises none. Used by oracle_reduce.hpp and oracle_scan.hpp.
#pragma once

#include "oracle.hpp"

#include <cmath>
#include <limits>

namespace oracle {

/// How the operands of an element are grouped.
enum class grouping {
  tree,      ///< neighbours, then neighbouring pairs, ...: of every algorithm that keeps rank order, but for
  pairwise,  ///< the pairwise reduce_scatter
  in_order,  ///< rank after rank, 16-bit floats in float and rounded once: of ranks that share memory
  free,      ///< any, as the functor commutes: all that is known is how far rounding can lead
};

[[nodiscard]] inline grouping grouping_of(operation_kind kind, algorithm how) {
  if (how == algorithm{}) return grouping::tree;  // of one rank
  if (how == algorithm::pairwise) return grouping::pairwise;
  if (how == algorithm::shared_memory) return grouping::in_order;
  if (how == algorithm::native) return grouping::free;
  return cohort::collective::find_implementation(kind, how)->needs_commutative ? grouping::free : grouping::tree;
}

template <class T>
inline constexpr bool is_rounded = std::is_floating_point_v<T> || std::is_same_v<T, complex> ||
                                   std::is_same_v<T, cohort::half> || std::is_same_v<T, cohort::bfloat16>;

template <class T, class Op>
class operands {
 public:
  using wide = std::conditional_t<std::is_same_v<T, complex>, complex, double>;
  static constexpr int most_ranks = 16;

  /// Element i of rank r is a function of (seed, r, i).
  operands(int ranks, std::size_t count, data kind, std::uint64_t seed) : ranks_(ranks), count_(count), kind_(kind) {
    for (int r = 0; r < ranks; ++r) {
      std::vector<T> own(count);
      write_operands<T, Op>(own.data(), seed, r, count, kind);
      inputs_.push_back(std::move(own));
      if constexpr (!is_scaled) continue;
      std::vector<T> contributed;
      contributed.reserve(count);
      for (const T& x : inputs_.back()) contributed.push_back(contribution(x, functor(r)));
      contributions_.push_back(std::move(contributed));
    }
    for (int r = 0; r < ranks; ++r) {
      rows_[r] = (is_scaled ? contributions_ : inputs_)[static_cast<std::size_t>(r)].data();
    }
    totals_.resize(count);
    write_totals(totals_.data());
  }

  operands(operands&&) noexcept = default;
  operands& operator=(operands&&) noexcept = default;
  ~operands() = default;

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] Op functor(int rank) const { return functor_of<Op>(rank, kind_); }
  [[nodiscard]] std::span<const T> input(int rank) const { return inputs_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const char* data_name() const noexcept { return kind_ == data::exact ? "exact" : "rough"; }
  [[nodiscard]] std::string title(const char* operation, std::size_t n, const char* form) const {
    return std::string(operation) + form + " by " + cohort::functor_name<Op>() + " of " + std::to_string(n) + " " +
           data_name() + " " + cohort::element_type_name<T>();
  }

  /// Elements [first, first + n) of the result on all ranks, grouped as a tree.
  [[nodiscard]] std::span<const T> totals(std::size_t first, std::size_t n) const {
    return std::span<const T>(totals_).subspan(first, n);
  }
  /// The same as the pairwise reduce_scatter groups them for one rank: what lies below it and itself from the right,
  /// what lies above it from the right, then both.
  [[nodiscard]] std::vector<T> pairwise(int rank, std::size_t first, std::size_t n) const {
    const Op op = functor(0);
    std::vector<T> result;
    for (std::size_t i = first; i < first + n; ++i) {
      T lower = at(rank, i);
      for (int r = rank; r-- > 0;) lower = static_cast<T>(op(at(r, i), lower));
      if (rank + 1 < ranks_) {
        T higher = at(ranks_ - 1, i);
        for (int r = ranks_ - 1; r-- > rank + 1;) higher = static_cast<T>(op(at(r, i), higher));
        lower = static_cast<T>(op(lower, higher));
      }
      result.push_back(conclusion(lower, ranks_));
    }
    return result;
  }
  /// What a scan gives a rank: windows that double in length, or one rank after the other.
  [[nodiscard]] std::vector<T> prefix(int rank, algorithm how) const {
    std::vector<T> result;
    for (std::size_t i = 0; i < count_; ++i) {
      const T all = how == algorithm::shared_memory ? in_order(rank + 1, i)
                    : how == algorithm::chain       ? along_chain(rank + 1, i)
                                                    : up_to(rank, i);
      result.push_back(conclusion(all, rank + 1));
    }
    return result;
  }
  /// What an exclusive_scan gives a rank but the first, without an initial value.
  [[nodiscard]] std::vector<T> prefix_before(int rank, algorithm how) const {
    if (how == algorithm::shared_memory || how == algorithm::chain) {
      std::vector<T> result;
      for (std::size_t i = 0; i < count_; ++i) {
        const T all = how == algorithm::chain ? along_chain(rank, i) : in_order(rank, i);
        result.push_back(conclusion(all, rank));
      }
      return result;
    }
    const Op op = functor(0);
    std::vector<T> result;
    for (std::size_t i = 0; i < count_; ++i) {
      T below = at(rank - 1, i);
      for (int length = 2; length <= rank; length *= 2) {
        below = static_cast<T>(op(window(rank - length, length, i), below));
      }
      result.push_back(conclusion(below, rank));
    }
    return result;
  }

  /// `found` holds elements [first, ...) of the result; it may be rounded otherwise where the grouping is free.
  template <class Backend>
  void compare(const checker<Backend>& c, const std::string& what, std::span<const T> found, std::size_t first,
               grouping g) const {
    if constexpr (is_rounded<T> && !std::is_same_v<Op, cohort::max> && !std::is_same_v<Op, cohort::min>) {
      if (g == grouping::free && kind_ == data::rough) return compare_rounded(c, what, found, first);
    }
    if (g == grouping::in_order) {
      std::vector<T> expected(found.size());
      write_in_order(expected.data(), first, found.size());
      return c.same(what, found, std::span<const T>(expected));
    }
    if (g != grouping::pairwise) return c.same(what, found, totals(first, found.size()));
    const std::vector<T> expected = pairwise(c.rank(), first, found.size());
    c.same(what, found, std::span<const T>(expected));
  }

 private:
  /// Whether a rank's contribution is another value than its input.
  static constexpr bool is_scaled = requires(const Op& op) { op.factor; };

  [[nodiscard, gnu::always_inline]] COHORT_TEST_NOT_SANITIZED const T& at(int rank, std::size_t i) const {
    return rows_[rank][i];
  }

  /// Written anew rather than asked of the library.
  [[nodiscard]] static T contribution(const T& x, [[maybe_unused]] const Op& op) {
    if constexpr (!is_scaled) return x;
    else if constexpr (std::is_same_v<T, cohort::half> || std::is_same_v<T, cohort::bfloat16>) {
      return T(static_cast<float>(x) * static_cast<float>(op.factor));
    } else return x * static_cast<T>(op.factor);
  }
  [[nodiscard]] static T conclusion(const T& total, [[maybe_unused]] int ranks) {
    if constexpr (!std::is_same_v<Op, cohort::average>) return total;
    else if constexpr (std::is_same_v<T, cohort::half> || std::is_same_v<T, cohort::bfloat16>) {
      return T(static_cast<float>(total) / static_cast<float>(ranks));
    } else if constexpr (std::is_same_v<T, complex>) return total / static_cast<double>(ranks);
    else return total / static_cast<T>(ranks);
  }

  COHORT_TEST_NOT_SANITIZED void write_in_order(T* into, std::size_t first, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) into[i] = conclusion(in_order(ranks_, first + i), ranks_);
  }
  /// The first n ranks from the left.
  [[nodiscard]] COHORT_TEST_NOT_SANITIZED T in_order(int n, std::size_t i) const {
    using accumulator = cohort::accumulator_t<Op, T>;
    const cohort::detail::applied<Op, T> op = [this] {
      if constexpr (std::is_same_v<cohort::detail::applied<Op, T>, Op>) return functor(0);
      else return cohort::detail::applied<Op, T>{};
    }();
    auto total = static_cast<accumulator>(at(0, i));
    for (int r = 1; r < n; ++r) total = static_cast<accumulator>(op(total, static_cast<accumulator>(at(r, i))));
    return static_cast<T>(total);
  }
  /// The same, rounded at each of them.
  [[nodiscard]] T along_chain(int n, std::size_t i) const {
    const Op op = functor(0);
    T total = at(0, i);
    for (int r = 1; r < n; ++r) total = static_cast<T>(op(total, at(r, i)));
    return total;
  }
  /// As a tree, all elements.
  COHORT_TEST_NOT_SANITIZED void write_totals(T* into) const {
    const Op op = functor(0);
    int core = 1;
    while (2 * core <= ranks_) core *= 2;
    const int pairs = ranks_ - core;
    T level[most_ranks]{};
    for (std::size_t i = 0; i < count_; ++i) {
      for (int k = 0; k < core; ++k) {
        level[k] = k < pairs ? static_cast<T>(op(at(2 * k, i), at(2 * k + 1, i))) : at(k + pairs, i);
      }
      for (int width = core; width > 1; width /= 2) {
        for (int k = 0; k < width / 2; ++k) level[k] = static_cast<T>(op(level[2 * k], level[2 * k + 1]));
      }
      into[i] = conclusion(level[0], ranks_);
    }
  }
  /// The operands of up to `length` ranks that end at `rank`, where length is a power of two.
  [[nodiscard]] T window(int rank, int length, std::size_t i) const {
    if (length == 1) return at(rank, i);
    const T upper = window(rank, length / 2, i);
    if (rank < length / 2) return upper;
    return static_cast<T>(functor(0)(window(rank - length / 2, length / 2, i), upper));
  }
  [[nodiscard]] T up_to(int rank, std::size_t i) const {
    int length = 1;
    while (length < ranks_) length *= 2;
    return window(rank, length, i);
  }

  template <class Backend>
  void compare_rounded(const checker<Backend>& c, const std::string& what, std::span<const T> found,
                       std::size_t first) const {
    const double divisor = std::is_same_v<Op, cohort::average> ? static_cast<double>(ranks_) : 1.0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      wide sum{};
      double magnitude = 0;
      for (int r = 0; r < ranks_; ++r) {
        const auto x = static_cast<wide>(at(r, first + i));
        sum += x;
        magnitude += std::abs(x);
      }
      const double tolerance = magnitude / divisor * (ranks_ + 1) * epsilon();
      const double error = std::abs(static_cast<wide>(found[i]) - sum / divisor);
      if (!(error <= tolerance)) {
        c.fail(what, "element " + std::to_string(i) + " is " + text_of(found[i]) + ", off by " + std::to_string(error) +
                         ", expected at most " + std::to_string(tolerance));
      }
    }
  }
  [[nodiscard]] static double epsilon() {
    if constexpr (std::is_same_v<T, complex>) return std::numeric_limits<double>::epsilon();
    else return static_cast<double>(std::numeric_limits<T>::epsilon());
  }

  int ranks_;
  std::size_t count_;
  data kind_;
  std::vector<std::vector<T>> inputs_{};
  std::vector<std::vector<T>> contributions_{};  // only if they differ from the inputs
  const T* rows_[2 * most_ranks]{};              // element i of rank r is rows_[r][i]
  std::vector<T> totals_{};
};

}  // namespace oracle
