// SPDX-License-Identifier: BSL-1.0
// Which algorithm carries out which call over MPI: schedules over MPI's messages, or MPI's own collectives.
#pragma once

#include <cohort/collective/select.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/unasked.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cohort::detail {

/// Messages of two ranks that MPI would ask for, and is not asked about in parts, up to so many bytes.
inline constexpr std::size_t longest_in_parts = std::size_t{80} << 10;
#ifdef OPEN_MPI
inline constexpr std::size_t longest_of_two = longest_in_parts;
#else
inline constexpr std::size_t longest_of_two = std::size_t{64} << 10;
#endif

namespace mpi_rows {

using selection_rows = std::vector<collective::selection_row>;

using enum operation_kind;
using enum collective::algorithm;

constexpr collective::selection_row in_a_crowd(operation_kind kind, std::size_t min_bytes, collective::algorithm how,
                                               bool needs_commutative = false) {
  return {kind, min_bytes, 3, needs_commutative, how, true};
}

/// From here on it is worth while to cut a vector that all ranks combine, by messages in parts.
#ifdef OPEN_MPI
inline constexpr std::size_t halves_in_parts = std::size_t{112} << 10;
#else
inline constexpr std::size_t halves_in_parts = std::size_t{40} << 10;
#endif

/// More ranks than cores, by a sweep of everything that carries each out (benchmarks/NOTES.md): a schedule over messages that
/// MPI sends unasked costs fewer changes of process than MPI's own collective. What MPI asks its receiver about costs one
/// for each word of that, so that short pieces are better then, or what MPI does itself.
inline constexpr collective::selection_row crowded_rows[] = {
    in_a_crowd(reduce, std::size_t{4} << 20, circulant, true),
    in_a_crowd(scan, std::size_t{4} << 20, chain),
    in_a_crowd(all_reduce, std::size_t{1} << 20, halving_doubling),
    in_a_crowd(all_reduce, std::size_t{192} << 10, native),
    in_a_crowd(all_reduce, halves_in_parts, circulant, true),
    in_a_crowd(all_reduce, halves_in_parts, halving_doubling),
    in_a_crowd(all_reduce, (std::size_t{16} << 10) + 1, native),
#ifdef OPEN_MPI
    in_a_crowd(all_reduce, std::size_t{64} << 10, circulant, true),  // with the check
    in_a_crowd(all_reduce, std::size_t{64} << 10, halving_doubling),
    in_a_crowd(all_reduce, (std::size_t{16} << 10) + 1, recursive_doubling),
    in_a_crowd(barrier, 0, central),
    in_a_crowd(broadcast, std::size_t{256} << 10, binomial),
    in_a_crowd(broadcast, (std::size_t{96} << 10) + 1, native),
    in_a_crowd(scatter, longest_in_parts + 1, native),
    in_a_crowd(gather, longest_in_parts + 1, native),
    in_a_crowd(all_reduce, 0, central, true),
    in_a_crowd(all_gather, std::size_t{64} << 10, native),
    in_a_crowd(all_gather, (std::size_t{8} << 10) + 1, circulant),
    in_a_crowd(all_gather, 0, central),
    in_a_crowd(reduce_scatter, std::size_t{2} << 20, pairwise, true),
    in_a_crowd(reduce_scatter, (std::size_t{8} << 10) + 1, circulant, true),
    in_a_crowd(all_to_all, (std::size_t{8} << 10) + 1, native),
    in_a_crowd(all_to_all, (std::size_t{1} << 10) + 1, pairwise),
    in_a_crowd(all_to_all, 0, central),
    in_a_crowd(scan, (std::size_t{128} << 10) + 1, native),
#else
    in_a_crowd(barrier, 0, dissemination),
    in_a_crowd(broadcast, std::size_t{4} << 20, circulant),
    in_a_crowd(reduce, std::size_t{192} << 10, binomial),
    in_a_crowd(reduce, longest_in_parts + 1, circulant, true),
    in_a_crowd(all_gather, std::size_t{512} << 10, native),
    in_a_crowd(all_gather, std::size_t{128} << 10, linear),
    in_a_crowd(all_gather, 0, circulant),
    in_a_crowd(reduce_scatter, std::size_t{2} << 20, native),
    in_a_crowd(reduce_scatter, std::size_t{192} << 10, pairwise, true),
    in_a_crowd(reduce_scatter, 0, circulant, true),
    in_a_crowd(all_to_all, (std::size_t{2} << 10) + 1, pairwise),
    in_a_crowd(all_to_all, 0, bruck),
    in_a_crowd(scan, std::size_t{384} << 10, recursive_doubling),
#endif
    in_a_crowd(broadcast, 0, binomial),
    in_a_crowd(scatter, 0, linear),
    in_a_crowd(gather, 0, linear),
    in_a_crowd(all_reduce, 0, recursive_doubling),
    in_a_crowd(scan, 0, chain),
};

/// A check is a round of messages: too much in front of what takes no longer itself.
inline void add_crowded(selection_rows& rows, bool checked) {
  constexpr std::size_t worth_a_check_here = std::size_t{256} << 10;
  for (collective::selection_row row : crowded_rows) {
    if (checked && row.algorithm == native && row.min_bytes < worth_a_check_here) continue;
    rows.push_back(row);
    if (row.operation != scan) continue;
    row.operation = exclusive_scan;
    rows.push_back(row);
  }
}

/// The usual rows of an operation, for more than two ranks.
inline void add_usual(selection_rows& rows, operation_kind kind) {
  for (collective::selection_row row : collective::default_selection) {
    row.min_ranks = std::max(row.min_ranks, 3);
    if (row.operation == kind) rows.push_back(row);
  }
}

/// From there on two ranks exchange halves: sooner than over sockets, as MPI asks about what is long.
inline constexpr std::size_t halves_of_two = std::size_t{512} << 10;

/// Two ranks exchange whole vectors, without headers if they are short.
inline void add_all_reduce(selection_rows& rows) {
  constexpr operation_kind kind = operation_kind::all_reduce;
  rows.push_back({kind, 8192, 3, false, native});
  add_usual(rows, kind);  // more than two ranks, and not MPI's to do
  rows.push_back({kind, halves_of_two, 2, true, circulant});
  rows.push_back({kind, halves_of_two, 2, false, native});
  rows.push_back({kind, halves_of_two, 2, false, halving_doubling});
#ifdef OPEN_MPI
  rows.push_back({kind, unasked_by_mpi + 1, 2, false, recursive_doubling});
#else
  // Two parts each way at once take longer than what MPICH does about them.
  rows.push_back({kind, std::size_t{40} << 10, 2, false, recursive_doubling});
#endif
  rows.push_back({kind, 0, 2, false, native});
  rows.push_back({kind, 0, 2, false, recursive_doubling});
  rows.push_back({kind, 0, 1, false, native});
}

/// What is short goes without a header, all else by messages. Needs: the rows of more than two ranks are there
inline void add_short_of_two(selection_rows& rows, operation_kind kind, std::size_t longest,
                             collective::algorithm how) {
  rows.push_back({kind, longest + 1, 2, false, how});
  rows.push_back({kind, 0, 2, false, native});
}

/// MPI_Ireduce of both libraries takes up to eight times as long as a schedule; of two ranks it is a message here.
inline void add_reduce(selection_rows& rows, bool checked) {
  constexpr operation_kind kind = operation_kind::reduce;
  add_usual(rows, kind);
  if (!checked) add_short_of_two(rows, kind, unasked_by_mpi, binomial);
}

/// MPI's own collectives of two ranks are a message each way, without a header (of_two.hpp). What MPI would ask for goes
/// sooner in parts, as messages with headers do; over Open MPI, so do long ones from one rank to the other as cohort cuts them.
inline void add_unchecked(selection_rows& rows, operation_kind kind) {
  rows.push_back({kind, 0, 3, false, native});
  // Nobody answers, so that of longer ones many are on their way at once by messages.
  constexpr std::size_t longest_scan = std::min(unasked_by_mpi, std::size_t{20} << 10);
  if (kind == scan || kind == exclusive_scan) return add_short_of_two(rows, kind, longest_scan, recursive_doubling);
#ifdef OPEN_MPI
  if (kind == broadcast) rows.push_back({kind, std::size_t{1} << 20, 2, false, binomial});
  if (kind == scatter) rows.push_back({kind, std::size_t{2} << 20, 2, false, linear});
#endif
  const auto in_parts = [&](std::size_t blocks, collective::algorithm how) {
    rows.push_back({kind, blocks * longest_of_two + 1, 2, false, native});
    rows.push_back({kind, blocks * unasked_by_mpi + 1, 2, false, how});
  };
  if (kind == broadcast) in_parts(1, binomial);
  if (kind == gather || kind == scatter) in_parts(1, linear);
  if (kind == all_gather) in_parts(2, circulant);
  if (kind == all_to_all) in_parts(1, pairwise);
  rows.push_back({kind, 0, 1, false, native});
}

/// Two halves, one for each.
inline void add_reduce_scatter(selection_rows& rows) {
  constexpr operation_kind kind = operation_kind::reduce_scatter;
  add_usual(rows, kind);
  rows.push_back({kind, 2 * unasked_by_mpi + 1, 2, true, circulant});
  add_short_of_two(rows, kind, 2 * unasked_by_mpi, halving);
}

}  // namespace mpi_rows

/// With a check before each of MPI's own collectives these are worth while only for long vectors: the messages of a
/// schedule carry the check themselves. Without one, MPI carries out what it is not slower at (benchmarks/NOTES.md).
[[nodiscard]] inline collective::selection_table mpi_selection(transport::native_check check) {
  using enum operation_kind;
  using collective::algorithm;
  const bool checked = check == transport::native_check::always;
  constexpr std::size_t worth_a_check = longest_in_parts + 1;
  mpi_rows::selection_rows rows;
  mpi_rows::add_crowded(rows, checked);
  for (const collective::implementation& i : collective::native_implementations) {
    const operation_kind kind = i.operation;
    if (kind == reduce) {
      mpi_rows::add_reduce(rows, checked);
    } else if (kind == reduce_scatter) {
      rows.push_back({kind, 2097152, 3, false, algorithm::native});
      if (!checked) mpi_rows::add_reduce_scatter(rows);
    } else if (kind == all_reduce && !checked) {
      mpi_rows::add_all_reduce(rows);
    } else if (kind == all_reduce) {
      rows.push_back({kind, mpi_rows::halves_of_two, 2, true, algorithm::circulant});
      rows.push_back({kind, mpi_rows::halves_of_two, 2, false, algorithm::halving_doubling});
    } else if (!checked) {
      mpi_rows::add_unchecked(rows, kind);
    } else if (kind == broadcast || kind == gather || kind == scatter || kind == all_gather || kind == all_to_all) {
      rows.push_back({kind, worth_a_check, 1, false, algorithm::native});
    }
  }
  for (const collective::selection_row& row : collective::default_selection) rows.push_back(row);
  return collective::selection_table(rows, true);
}

}  // namespace cohort::detail
