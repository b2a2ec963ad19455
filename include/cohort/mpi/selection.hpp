// SPDX-License-Identifier: BSL-1.0
// Which algorithm carries out which call over MPI: schedules over MPI's messages, or MPI's own collectives.
#pragma once

#include <cohort/collective/select.hpp>
#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <vector>

namespace cohort::detail {

/// With a check before each of MPI's own collectives these are worth while only for long vectors: the messages of a
/// schedule carry the check themselves. Without one, MPI carries out what it is not slower at.
[[nodiscard]] inline collective::selection_table mpi_selection(transport::native_check check) {
  using collective::algorithm;
  const bool checked = check == transport::native_check::always;
  std::vector<collective::selection_row> rows;
  for (const collective::implementation& i : collective::native_implementations) {
    const bool in_v = i.operation == operation_kind::gather_v || i.operation == operation_kind::scatter_v ||
                      i.operation == operation_kind::all_gather_v || i.operation == operation_kind::all_to_all_v;
    // Where ranks do not know each other's sizes, the size says nothing; and MPI's scans are linear.
    const bool never =
        checked && (in_v || i.operation == operation_kind::all_reduce || i.operation == operation_kind::barrier ||
                    i.operation == operation_kind::scan || i.operation == operation_kind::exclusive_scan);
    if (never) continue;
    if (i.operation == operation_kind::all_reduce) {
      // Unchecked, over the TCP of Open MPI 4.1 and MPICH 4.0: of two ranks a schedule over messages takes as long as
      // MPI_Iallreduce or less but for some lengths, of more only where a vector is short (benchmarks/NOTES.md).
      rows.push_back({i.operation, 8192, 3, false, algorithm::native});
      for (collective::selection_row row : collective::default_selection) {  // more than two ranks, and not MPI's to do
        row.min_ranks = std::max(row.min_ranks, 3);
        if (row.operation == i.operation) rows.push_back(row);
      }
      rows.push_back({i.operation, 524288, 2, true, algorithm::circulant});
      rows.push_back({i.operation, 524288, 2, false, algorithm::native});
      rows.push_back({i.operation, 524288, 2, false, algorithm::halving_doubling});
      rows.push_back({i.operation, 65536, 2, false, algorithm::recursive_doubling});
      rows.push_back({i.operation, 8192, 1, false, algorithm::native});
      continue;
    }
    if (i.operation == operation_kind::reduce) {
      // MPI_Ireduce of both libraries takes up to eight times as long, but for two ranks and what MPI sends at once.
      for (collective::selection_row row : collective::default_selection) {
        row.min_ranks = std::max(row.min_ranks, 3);
        if (row.operation == i.operation) rows.push_back(row);
      }
      rows.push_back({i.operation, 65536, 2, false, algorithm::binomial});
      if (!checked) rows.push_back({i.operation, 16384, 2, false, algorithm::native});
      continue;
    }
    if (i.operation == operation_kind::reduce_scatter) {
      rows.push_back({i.operation, 2097152, 3, false, algorithm::native});
      continue;
    }
    rows.push_back({i.operation, checked ? std::size_t{65536} : 0, 1, false, algorithm::native});
  }
  for (const collective::selection_row& row : collective::default_selection) rows.push_back(row);
  return collective::selection_table(rows, true);
}

}  // namespace cohort::detail
