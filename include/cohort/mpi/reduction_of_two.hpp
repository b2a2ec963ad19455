// SPDX-License-Identifier: BSL-1.0
// MPI's own reductions of two ranks, as what they are: a message each way or one way, and cohort's arithmetic. Used as the bodies
// of native_bodies.hpp are.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/of_two.hpp>
#include <cohort/mpi/request_list.hpp>
#include <cohort/mpi/unasked.hpp>
#include <cohort/transport/call.hpp>

#include <cstddef>

namespace cohort::transport::detail_mpi {

/// A reduction of two ranks: a vector each way or one way, and the arithmetic where the result is needed.
struct reduction_of_two {
  mpi_endpoint* endpoint;
  of_two two;
  const detail::reducer* combine;
  std::size_t count;
  const std::byte* given = nullptr;  ///< what goes to the other rank
  const std::byte* mine = nullptr;   ///< this rank's operand; null: the result is what comes
  std::byte* out = nullptr;          ///< the result; null: this rank has none
  bool gives = false;                ///< whether anything goes there, be it nothing but the word that this rank is here
  bool takes = false;                ///< whether anything comes
  detail::borrowed_buffer arrived{};

  /// Whether it is so short that MPI sends it unasked: longer ones are MPI's to cut, or those of messages in parts.
  [[nodiscard]] static bool suits(const group& g, std::size_t bytes) noexcept {
    return g.size() == 2 && bytes <= detail::unasked_by_mpi;
  }
  reduction_of_two(mpi_endpoint& e, const group& g, const detail::reducer& r, std::size_t n)
      : endpoint(&e), two(e.other_of(g)), combine(&r), count(n) {}

  // What each operation is, for this rank.
  void all_reduce(const std::byte* in, std::byte* to) {
    give(in);
    mine = in;
    take_for(to);
  }
  void reduce(const std::byte* in, std::byte* to, int root) {
    if (two.rank() != root) return give(in);
    mine = in;
    take_for(to);
  }
  void scan(const std::byte* in, std::byte* to) {
    mine = in;
    if (two.rank() == 1) return take_for(to);
    give(in);
    out = to;
  }
  void exclusive_scan(const std::byte* in, std::byte* to) {
    if (two.rank() == 1) return take_for(to);
    give(in);
  }
  /// `in` has a block of each rank.
  void reduce_scatter(const std::byte* in, std::byte* to) {
    give(in + bytes() * static_cast<std::size_t>(two.other()));
    mine = in + bytes() * static_cast<std::size_t>(two.rank());
    take_for(to);
  }

  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    const auto n = static_cast<int>(bytes());
    if (gives) two.give(given, n, MPI_BYTE, comm, parts);
    if (takes) two.take(arrived.data(), n, MPI_BYTE, comm, parts);
  }
  /// MPI is done with all that `start` has left.
  void finish() const {
    if (out == nullptr) return;
    two.keep(out, mine != nullptr ? mine : arrived.data(), bytes());
    if (!takes || mine == nullptr) return;
    combine->fold(combine->op, out, arrived.data(), count,
                  two.other() == 0 ? collective::side::left : collective::side::right);
  }
  void end(bool done) noexcept {
    if (!done && takes) arrived.leave();
  }

 private:
  [[nodiscard]] std::size_t bytes() const noexcept { return count * combine->element_bytes; }
  void give(const std::byte* operand) noexcept {
    given = operand;
    gives = true;
  }
  void take_for(std::byte* result) {
    out = result;
    takes = true;
    arrived = endpoint->take_kept(bytes());
  }
};

}  // namespace cohort::transport::detail_mpi
