// SPDX-License-Identifier: BSL-1.0
// MPI's own collectives as awaitables: what transport/native.hpp asks for, by MPI_Iallreduce and its kin. Each has a
// body that starts it when it is its turn, and lives in the frame of the operation until MPI is done (impl/).
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/mpi/datatype.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/native.hpp>

#include <cstddef>

namespace cohort::transport {

template <>
struct native_collectives<mpi_endpoint> {
  using layout = collective::layout;
  using reducer = detail::reducer;

  static task<> barrier(call& c);
  static task<> broadcast(call& c, int root, std::byte* data, std::size_t bytes);
  static task<> all_reduce(call& c, const std::byte* in, std::byte* out, std::size_t count, const reducer& op);
  static task<> reduce(call& c, int root, const std::byte* in, std::byte* out, std::size_t count, const reducer& op);
  static task<> scan(call& c, const std::byte* in, std::byte* out, std::size_t count, const reducer& op);
  static task<> exclusive_scan(call& c, const std::byte* in, std::byte* out, std::size_t count, const reducer& op);

  /// Whether MPI's counts and displacements, which are of type int, can say where the blocks are. Every rank knows all
  /// sizes here, so that all answer alike.
  [[nodiscard]] static bool fits(const layout& where) noexcept {
    return where.bytes(0, where.blocks()) <= detail::most_mpi_count;
  }
  /// The same where every rank has a block of that size; 0 if the sizes differ.
  [[nodiscard]] static bool fits(std::size_t block_bytes, int ranks) noexcept {
    return block_bytes <= detail::most_mpi_count / static_cast<std::size_t>(ranks);
  }
  static task<> reduce_scatter(call& c, const layout& in, const layout& out, const reducer& op);
  static task<> all_gather(call& c, const layout& out);

  static task<> gather(call& c, int root, const layout& in, const layout& out);
  static task<> scatter(call& c, int root, const layout& in, const layout& out);

  static task<> all_to_all(call& c, const layout& in, const layout& out);

 private:
  [[nodiscard]] static mpi_endpoint& endpoint(call& c) noexcept { return static_cast<mpi_endpoint&>(c.engine()); }
  static task<> even_all_to_all(call& c, const layout& in, const layout& out);
  static task<> uneven_all_to_all(call& c, const layout& in, const layout& out);
  /// Of a gather_v or scatter_v only the root knows the sizes, so that it alone can find out.
  static void require_small(call& c, const layout& where);
};

}  // namespace cohort::transport

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/mpi/impl/native_collectives.hpp>
#endif
