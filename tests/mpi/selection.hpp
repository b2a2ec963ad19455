// SPDX-License-Identifier: BSL-1.0
// What carries out which call over MPI: a part of semantics.cpp.
#pragma once

#include "parts.hpp"

#include <cohort/mpi/selection.hpp>

#include <cstddef>

namespace mpi_test {

/// What MPI cannot carry out goes as it would without MPI; between two ranks also by what is fastest over it.
inline task<> selection(world_type) {
  using cohort::collective::algorithm;
  using enum cohort::operation_kind;
  const auto over_mpi = cohort::detail::mpi_selection(cohort::transport::native_check::never);
  const auto checks = cohort::detail::mpi_selection(cohort::transport::native_check::always);
  for (int i = 0; i < 48; ++i) {
    const auto kind = i % 3 == 0 ? all_reduce : i % 3 == 1 ? reduce : reduce_scatter;
    const int ranks = 2 + i / 6;
    for (std::size_t bytes = 8; bytes <= std::size_t{64} << 20; bytes *= 2) {
      const auto usual = cohort::collective::selection_table{}.choose(kind, bytes, ranks, i % 2 == 0, {false});
      // Sooner than over sockets.
      const bool in_halves = kind == all_reduce && ranks == 2 && bytes >= 524288 && bytes <= 1048576;
      const algorithm halves = i % 2 == 0 ? algorithm::circulant : algorithm::halving_doubling;
      const algorithm wanted = in_halves ? halves : usual;
      expect(over_mpi.choose(kind, bytes, ranks, i % 2 == 0, {false}) == wanted,
             "the usual algorithm where MPI has none");
      expect(checks.choose(kind, bytes, ranks, i % 2 == 0, {false}) == wanted,
             "the same with the check, where MPI has none");
    }
  }
  expect(over_mpi.choose(all_reduce, 1 << 20, 4, true) == algorithm::native, "MPI's own of four ranks");
  for (const auto kind :
       {barrier, broadcast, reduce, all_reduce, gather, scatter, all_gather, all_to_all, reduce_scatter, scan}) {
    expect(over_mpi.choose(kind, 8, 2, true) == algorithm::native, "messages of two ranks without headers");
    expect(cohort::collective::is_one_message(kind, over_mpi.choose(kind, 8, 2, true, {false})),
           "a message where two ranks need no more, and the functor may throw");
    expect(cohort::collective::is_one_message(kind, checks.choose(kind, 8, 2, true)), "headers, which are checked");
  }
  expect(over_mpi.choose(all_reduce, cohort::detail::unasked_by_mpi, 2, false) == algorithm::native,
         "the longest vectors without headers");
  expect(over_mpi.choose(reduce_scatter, 2 * cohort::detail::unasked_by_mpi, 2, false) == algorithm::native,
         "the longest halves without headers");
  expect(over_mpi.choose(scan, 32768, 2, false) == algorithm::recursive_doubling, "a stream of messages");
  constexpr cohort::collective::means in_memory{true, true};
  for (const auto kind : {broadcast, scatter, all_gather, all_to_all}) {
    expect(over_mpi.choose(kind, std::size_t{4} << 20, 2, true, in_memory) == algorithm::shared_memory,
           "the window, where the ranks agree on it or on messages");
    expect(cohort::collective::is_one_message(kind, over_mpi.choose(kind, std::size_t{4} << 20, 2, true, {false})),
           "messages in memory past the window, which are not MPI's");
  }
  expect(over_mpi.choose(scan, 8, 2, true, in_memory) == algorithm::recursive_doubling, "a stream in memory");
  expect(over_mpi.choose(scatter, std::size_t{4} << 20, 4, true, in_memory) == algorithm::native,
         "MPI's own of long blocks of four ranks");
  expect(over_mpi.choose(all_reduce, 8, 2, true, in_memory) == algorithm::shared_memory, "the window");
  constexpr std::size_t parts = std::size_t{64} << 10;
  for (const auto kind : {broadcast, gather, scatter, all_to_all, all_gather}) {
    const std::size_t blocks = kind == all_gather ? 2 : 1;
    for (const std::size_t unasked : {std::size_t{8}, cohort::detail::unasked_by_mpi}) {
      expect(over_mpi.choose(kind, blocks * unasked, 2, true) == algorithm::native,
             "no header of what MPI sends unasked");
    }
    expect(over_mpi.choose(kind, blocks * parts, 2, true) != algorithm::native, "messages in parts");
    expect(over_mpi.choose(kind, blocks * cohort::detail::longest_of_two, 2, true) != algorithm::native,
           "the longest of these");
    expect(over_mpi.choose(kind, blocks * 100000, 2, true) == algorithm::native, "MPI's own of longer blocks");
  }
#ifdef OPEN_MPI
  expect(over_mpi.choose(broadcast, 1 << 20, 2, true) == algorithm::binomial, "one message of a long vector");
  expect(over_mpi.choose(scatter, 1 << 21, 2, true) == algorithm::linear, "messages of long blocks");
#else
  expect(over_mpi.choose(broadcast, 1 << 20, 2, true) == algorithm::native, "one message of a long vector");
#endif
  expect(over_mpi.choose(broadcast, 1 << 20, 3, true) == algorithm::native,
         "MPI's own of a long vector of three ranks");
  expect(over_mpi.choose(gather, 1 << 18, 2, true) == algorithm::native, "MPI's own of blocks that are not so long");
  expect(over_mpi.choose(all_to_all, 1 << 21, 2, true) == algorithm::native, "MPI's own of blocks both ways");
  expect(over_mpi.choose(broadcast, 8, 3, true) == algorithm::native, "MPI's own of three ranks");
  expect(over_mpi.choose(all_gather_v, 0, 2, true) == algorithm::native, "MPI's own where sizes differ");
  expect(over_mpi.choose(scan, 1 << 20, 2, true) == algorithm::recursive_doubling, "no long scan of MPI's");
  expect(over_mpi.choose(reduce, 1 << 20, 4, true) == algorithm::circulant, "none of MPI's own reduces of four ranks");
  // More ranks than cores: what is short by messages that MPI sends unasked, whichever library it is.
  constexpr cohort::collective::means crowd{true, false, false, true};
  for (const auto check : {cohort::transport::native_check::never, cohort::transport::native_check::always}) {
    const auto table = cohort::detail::mpi_selection(check);
    for (const auto kind : {barrier, broadcast, scatter, gather, reduce, all_reduce, all_gather, reduce_scatter,
                            all_to_all, scan, exclusive_scan}) {
      for (const int ranks : {3, 4, 8}) {
        for (const bool commutative : {true, false}) {
          expect(table.choose(kind, 64, ranks, commutative, crowd) != algorithm::native,
                 "messages of ranks that share cores");
        }
      }
    }
    expect(table.choose(scan, 8, 4, true, crowd) == algorithm::chain, "a stream where ranks share cores");
    expect(table.choose(gather, 8192, 4, true, crowd) == algorithm::linear, "one message from each to the root");
    expect(table.choose(all_reduce, 1 << 20, 4, false, crowd) == algorithm::halving_doubling,
           "halves of a long vector");
  }
  expect(over_mpi.choose(all_reduce, 1 << 18, 4, true, crowd) == algorithm::native,
         "MPI's own where it asks the receiver");
  expect(over_mpi.choose(all_reduce, 1 << 17, 4, true, crowd) == algorithm::circulant, "pieces that go in parts");
  expect(checks.choose(all_reduce, 1 << 16, 4, true, crowd) == algorithm::circulant, "no check before it");
  co_return;
}

}  // namespace mpi_test
