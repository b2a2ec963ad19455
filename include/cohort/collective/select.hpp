// SPDX-License-Identifier: BSL-1.0
// Which algorithm carries out a call: a table over operation, bytes, ranks and functor, which a user may override.
// Asked once by every collective; every rank must be given the same table, as the choice is part of the fingerprint.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/operation_kind.hpp>
#include <cohort/collective/passage.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace cohort::collective {

/// What a call may be carried out with besides messages, and on what.
struct means {
  bool native = true;    ///< the backend's own collectives, where it has any
  bool shared = false;   ///< memory that all ranks see
  bool hosts = false;    ///< several hosts, with several ranks on some
  bool crowded = false;  ///< fewer cores than ranks, or one thread: then each message counts, not each round
};

/// One line of the table: it applies to calls of at least that many bytes and ranks.
struct selection_row {
  operation_kind operation{};
  std::size_t min_bytes = 0;
  int min_ranks = 1;
  bool needs_commutative = false;
  collective::algorithm algorithm{};
  bool needs_crowd = false;

  [[nodiscard]] constexpr bool applies(operation_kind kind, std::size_t bytes, int ranks, bool commutative,
                                       const means& usable) const noexcept {
    return operation == kind && bytes >= min_bytes && ranks >= min_ranks && (commutative || !needs_commutative) &&
           (usable.native || algorithm != algorithm::native) && (usable.crowded || !needs_crowd);
  }
};

/// For Ethernet and loopback: a message costs as much as some 32 KiB on the wire, and more where ranks share fewer cores and
/// each of them is a change of process: then what all of them do is added up, and a pipeline only has more messages. Of the rows
/// of an operation the first that applies is taken. Reductions by rows without needs_commutative all combine by one tree over
/// the ranks, so that choosing as if no functor commuted gives results that do not depend on the size of the vector.
inline constexpr selection_row default_selection[] = {
    {operation_kind::barrier, 0, 6, false, algorithm::central, true},
    {operation_kind::barrier, 0, 1, false, algorithm::dissemination},
    {operation_kind::broadcast, 0, 3, false, algorithm::binomial, true},
    {operation_kind::broadcast, 65536, 3, false, algorithm::circulant},
    {operation_kind::broadcast, 0, 1, false, algorithm::binomial},
    {operation_kind::scatter, 512, 3, false, algorithm::linear, true},
    {operation_kind::scatter, 8193, 1, false, algorithm::linear},
    {operation_kind::scatter, 0, 1, false, algorithm::binomial},
    {operation_kind::scatter_v, 0, 1, false, algorithm::linear},
    {operation_kind::gather, 0, 3, false, algorithm::linear, true},
    {operation_kind::gather, 8193, 1, false, algorithm::linear},
    {operation_kind::gather, 0, 1, false, algorithm::binomial},
    {operation_kind::gather_v, 0, 1, false, algorithm::linear},
    {operation_kind::reduce, 0, 3, false, algorithm::binomial, true},
    {operation_kind::reduce, 65536, 3, true, algorithm::circulant},
    {operation_kind::reduce, 65536, 4, false, algorithm::halving_gather},
    {operation_kind::reduce, 0, 1, false, algorithm::binomial},
    // Two ranks with a core each exchange whole vectors for longer: halves need a second round, and save only arithmetic. What is
    // longer than they send unasked is announced first, and does not stay in the caches.
    {operation_kind::all_reduce, 262144, 2, true, algorithm::circulant, true},
    {operation_kind::all_reduce, 1048577, 2, true, algorithm::circulant},
    {operation_kind::all_reduce, 65537, 3, true, algorithm::circulant},
    {operation_kind::all_reduce, 0, 3, true, algorithm::central, true},
    {operation_kind::all_reduce, 65536, 3, true, algorithm::circulant},
    {operation_kind::all_reduce, 262144, 2, false, algorithm::halving_doubling, true},
    {operation_kind::all_reduce, 1048577, 2, false, algorithm::halving_doubling},
    {operation_kind::all_reduce, 262144, 3, false, algorithm::halving_doubling},
    {operation_kind::all_reduce, 65536, 4, false, algorithm::halving_doubling},
    {operation_kind::all_reduce, 0, 3, false, algorithm::recursive_doubling, true},
    {operation_kind::all_reduce, 32768, 3, true, algorithm::circulant},
    {operation_kind::all_reduce, 32768, 4, false, algorithm::halving_doubling},
    {operation_kind::all_reduce, 0, 1, false, algorithm::recursive_doubling},
    {operation_kind::all_gather, 65537, 3, false, algorithm::circulant, true},
    {operation_kind::all_gather, 0, 6, false, algorithm::central, true},
    {operation_kind::all_gather, 2049, 3, false, algorithm::circulant, true},
    {operation_kind::all_gather, 0, 3, false, algorithm::central, true},
    {operation_kind::all_gather, 0, 1, false, algorithm::circulant},
    {operation_kind::all_gather_v, 0, 1, false, algorithm::circulant},
    {operation_kind::reduce_scatter, 16385, 3, true, algorithm::circulant, true},
    {operation_kind::reduce_scatter, 0, 3, true, algorithm::central, true},
    {operation_kind::reduce_scatter, 0, 1, true, algorithm::circulant},
    {operation_kind::reduce_scatter, 0, 1, false, algorithm::halving},
    {operation_kind::reduce_scatter_v, 0, 1, true, algorithm::circulant},
    {operation_kind::reduce_scatter_v, 0, 1, false, algorithm::halving},
    {operation_kind::all_to_all, 2049, 3, false, algorithm::pairwise, true},
    {operation_kind::all_to_all, 0, 8, false, algorithm::central, true},
    {operation_kind::all_to_all, 1025, 3, false, algorithm::pairwise, true},
    {operation_kind::all_to_all, 0, 3, false, algorithm::central, true},
    {operation_kind::all_to_all, 257, 1, false, algorithm::pairwise},
    {operation_kind::all_to_all, 0, 8, false, algorithm::bruck},
    {operation_kind::all_to_all, 0, 1, false, algorithm::pairwise},
    {operation_kind::all_to_all_v, 0, 1, false, algorithm::pairwise},
    // A chain is n - 1 messages, whoever has to wait for the last of them.
    {operation_kind::scan, 0, 3, false, algorithm::chain, true},
    {operation_kind::exclusive_scan, 0, 3, false, algorithm::chain, true},
    // A chain has to be filled: the more ranks, the longer the vector that is worth it.
    {operation_kind::scan, 4194304, 3, false, algorithm::chain},
    {operation_kind::scan, 0, 17, false, algorithm::recursive_doubling},
    {operation_kind::scan, 262144, 4, false, algorithm::chain},
    {operation_kind::scan, 0, 1, false, algorithm::recursive_doubling},
    {operation_kind::exclusive_scan, 4194304, 3, false, algorithm::chain},
    {operation_kind::exclusive_scan, 0, 17, false, algorithm::recursive_doubling},
    {operation_kind::exclusive_scan, 262144, 4, false, algorithm::chain},
    {operation_kind::exclusive_scan, 0, 1, false, algorithm::recursive_doubling},
};

/// "binomial, circulant": those that an operation can be carried out by; "" if it has no choice of them.
[[nodiscard]] std::string list_of_algorithms(operation_kind kind);

/// The table of one communicator.
class selection_table {
 public:
  constexpr selection_table() noexcept : selection_table(default_selection) {}

  /// Needs: at most `capacity` rows, and for each operation that is asked for one that applies to every call
  ///        `natives`: whether the backend has collectives of its own, which rows and overrides may then name
  constexpr explicit selection_table(std::span<const selection_row> rows, bool natives = false) : natives_(natives) {
    if (rows.size() > capacity) {
      throw error(errc::invalid_argument, "a selection table has at most " + std::to_string(capacity) +
                                              " rows, found " + std::to_string(rows.size()));
    }
    for (const selection_row& row : rows) rows_[row_count_++] = row;
    for (std::size_t i = row_count_; i-- > 0;) first_[static_cast<std::size_t>(rows_[i].operation)] = i;
  }

  /// The algorithm for a call; the same on every rank that is given the same numbers.
  ///
  /// Needs:  `bytes` is the size of one rank's vector; of the whole result for an all_gather; of one block for a
  ///         gather, scatter or all_to_all; 0 where ranks do not know of each other's sizes (the forms in _v)
  /// Result: shared_memory if the ranks share memory: then it is faster but where `passage_of` says that messages are, and
  ///         keeps rank order; on several hosts with several ranks hierarchical, where the operation has that
  /// Order:  an algorithm that does not keep rank order is chosen only if `commutative`; the backend's own, and that of
  ///         ranks which share memory, only if `usable` says so
  /// Errors: invalid_argument for an operation that has no row, such as a send
  /// Needs:  one thread at a time: it remembers the table's last answer for each operation
  [[nodiscard]] constexpr algorithm choose(operation_kind kind, std::size_t bytes, int ranks, bool commutative,
                                           means usable = means{}) const {
    const algorithm wanted = overrides_[static_cast<std::size_t>(kind)];
    if (wanted == algorithm{} && goes_to_the_window(kind, bytes, ranks, usable)) return algorithm::shared_memory;
    if (std::is_constant_evaluated()) return choose_by_table(kind, bytes, ranks, commutative, usable);
    // Most calls are as the last one of their kind was.
    answer& last = answers_[static_cast<std::size_t>(kind)];
    const std::uint64_t asked = answer::question(ranks, commutative, usable);
    if (last.asked != asked || last.bytes != bytes) {
      last = {bytes, asked, choose_by_table(kind, bytes, ranks, commutative, usable)};
    }
    return last.chosen;
  }

  /// From now on the operation is carried out by that algorithm. Where a functor does not commute and the algorithm
  /// needs it to, the table decides as before.
  ///
  /// Errors: invalid_argument if the operation has no such algorithm; the table is unchanged then
  constexpr void override_with(operation_kind kind, algorithm wanted) {
    if (find_implementation(kind, wanted) == nullptr || (wanted == algorithm::native && !natives_)) {
      throw error(errc::invalid_argument, "\"" + std::string{collective::to_string(wanted)} +
                                              "\" is not an algorithm of " + std::string{name(kind)} + "; these are " +
                                              list_of_algorithms(kind) + (natives_ ? ", native" : ""));
    }
    overrides_[static_cast<std::size_t>(kind)] = wanted;
    answers_[static_cast<std::size_t>(kind)] = {};
  }

  /// The same for each of "all_reduce=ring,broadcast=binomial"; nothing for "".
  ///
  /// Errors: invalid_argument that names the part that is wrong and what could stand there; the table is unchanged then
  void override_with(std::string_view spec);

  [[nodiscard]] constexpr std::span<const selection_row> rows() const noexcept { return {rows_.data(), row_count_}; }

  /// The override of an operation, if it has one.
  [[nodiscard]] constexpr std::optional<algorithm> override_of(operation_kind kind) const noexcept {
    const algorithm wanted = overrides_[static_cast<std::size_t>(kind)];
    return wanted == algorithm{} ? std::nullopt : std::optional{wanted};
  }

  /// One line for each row, in the order in which they are tried.
  [[nodiscard]] std::string to_string() const;

  /// Whether the backend has collectives of its own.
  [[nodiscard]] constexpr bool has_natives() const noexcept { return natives_; }

  static constexpr std::size_t capacity = 192;

 private:
  /// What the table said to a call.
  struct answer {
    std::size_t bytes = 0;
    std::uint64_t asked = 0;  // 0: there was none
    algorithm chosen{};

    [[nodiscard]] static constexpr std::uint64_t question(int ranks, bool commutative, const means& usable) noexcept {
      // Each of `usable` is a byte, of which one bit says something.
      return std::bit_cast<std::uint32_t>(usable) | std::uint32_t{commutative} << 1 | std::uint32_t{1} << 2 |
             std::uint64_t{static_cast<std::uint32_t>(ranks)} << 32;
    }
  };

  /// What may go either way is begun in the window; but the backend's own collectives, of more ranks than two, are not to wait.
  [[nodiscard]] constexpr bool goes_to_the_window(operation_kind kind, std::size_t bytes, int ranks,
                                                  const means& usable) const noexcept {
    if (!usable.shared || !has_shared_memory(kind)) return false;
    const passage way = passage_of(kind, bytes, ranks);
    return way == passage::window || (way == passage::either && (ranks == 2 || !natives_ || !usable.native));
  }
  /// By an override, if there is one that may be used; otherwise by the first row that applies.
  [[nodiscard, gnu::noinline]] constexpr algorithm choose_by_table(operation_kind kind, std::size_t bytes, int ranks,
                                                                   bool commutative, means usable) const {
    const algorithm wanted = overrides_[static_cast<std::size_t>(kind)];
    if (wanted != algorithm{} && (commutative || !find_implementation(kind, wanted)->needs_commutative) &&
        (usable.native || wanted != algorithm::native) && (usable.shared || wanted != algorithm::shared_memory) &&
        (usable.hosts || wanted != algorithm::hierarchical)) {
      return wanted;
    }
    if (goes_to_the_window(kind, bytes, ranks, usable)) return algorithm::shared_memory;
    // What two ranks do past it are messages in memory, which no library's own are to take the place of.
    if (usable.shared && ranks == 2 && has_shared_memory(kind)) usable.native = false;
    if (usable.hosts && has_hierarchy(kind, commutative)) return algorithm::hierarchical;
    for (const selection_row& row : rows().subspan(first_[static_cast<std::size_t>(kind)])) {
      if (row.applies(kind, bytes, ranks, commutative, usable)) return row.algorithm;
    }
    throw error(errc::invalid_argument, "no algorithm is listed for " + std::string{name(kind)});
  }

  static constexpr std::size_t operations = static_cast<std::size_t>(last_operation_kind) + 1;

  std::array<selection_row, capacity> rows_{};
  std::size_t row_count_ = 0;
  std::array<std::size_t, operations> first_{};  // the first row of each operation that has one
  bool natives_ = false;
  std::array<algorithm, operations> overrides_{};
  mutable std::array<answer, operations> answers_{};
};

/// Into how many segments a pipeline cuts a vector: as many as balance the rounds that it takes to fill against the
/// size of a message, none of them under 32 KiB.
///
/// Needs: `a` is circulant or chain; 1 for all others
[[nodiscard]] constexpr int pipeline_segments(algorithm a, std::size_t bytes, int ranks) noexcept {
  if (ranks < 3 || (a != algorithm::circulant && a != algorithm::chain)) return 1;
  const auto rounds_to_fill = static_cast<std::size_t>(a == algorithm::chain ? ranks - 2 : ceil_log2(ranks) - 1);
  constexpr std::size_t most = 1 << 20;
  const std::size_t messages = bytes / 32768 < most ? bytes / 32768 : most;
  std::size_t least = 1;
  for (std::size_t above = messages + 1; least + 1 < above;) {
    const std::size_t middle = (least + above) / 2;
    (middle * middle <= rounds_to_fill * messages ? least : above) = middle;
  }
  return static_cast<int>(least);
}

/// How many blocks a rank has in flight each way in a pairwise all_to_all of blocks of that many bytes.
[[nodiscard]] constexpr int exchange_window(std::size_t block_bytes) noexcept { return block_bytes <= 32768 ? 32 : 4; }

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/select.hpp>
#endif
