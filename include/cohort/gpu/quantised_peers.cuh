// SPDX-License-Identifier: BSL-1.0
// An all_reduce of ranks that read each other's device memory, with 8-bit floats between them: three phases for
// local_ranks.hpp. For several GPUs: nccl/quantised_all_reduce.cuh, with the same bits.
#pragma once

#include <cohort/gpu/local_ranks.hpp>
#include <cohort/gpu/quantised_fold.cuh>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort {
namespace detail {

template <class Blocks, class T>
void enqueue_quantise(const peer_rank& me, device_span<const T> in, const float8_cut<Blocks>& cut, std::uint8_t* wire) {
  launch_quantise<Blocks, T>(in, cut, wire, me.stream());
}
template <class Blocks, class Op>
void enqueue_quantised_fold(const peer_rank& me, const fold_sources<std::uint8_t>& from, const float8_cut<Blocks>& cut,
                            std::uint8_t* out, const Op& op) {
  launch_quantised_fold<Blocks, Op>(from, cut, out, op, me.stream());
}
template <class Blocks, class T>
void enqueue_dequantise(const peer_rank& me, const fold_sources<std::uint8_t>& pieces, const float8_cut<Blocks>& cut,
                        device_span<T> out) {
  launch_dequantise<Blocks, T>(pieces, cut, out, me.stream());
}

/// Each rank quantises all of its elements, folds its own piece over its own codes of it, which nobody else reads, and
/// takes the elements from the pieces of all.
template <class T, class Op, class Blocks>
struct peer_quantised_all_reduce {
  static constexpr std::string_view name = "quantised_all_reduce";
  static constexpr int phases = 3;
  peer_buffers<T> inout;
  peer_buffers<std::uint8_t> wire;
  Op op;

  void check(int ranks) const {
    const float8_cut<Blocks> cut(check_peers("quantised_all_reduce", "inout", inout, ranks), ranks);
    if (const std::size_t found = check_peers("quantised_all_reduce", "wire", wire, ranks); found < cut.wire()) {
      throw error(errc::invalid_argument, "quantised_all_reduce: a buffer of wire has " + std::to_string(found) +
                                              " bytes, expected at least " + std::to_string(cut.wire()) +
                                              " = float8_cut(count, ranks).wire()");
    }
    for (const device_span<std::uint8_t>& w : wire) {
      if (reinterpret_cast<std::uintptr_t>(w.data()) % 16 == 0) continue;
      throw error(errc::invalid_argument,
                  "quantised_all_reduce: a buffer of wire does not start on 16 bytes: pass all of a device_buffer");
    }
  }
  template <class Rank>
  void operator()(int phase, const Rank& me) const {
    const device_span<T> mine = inout[peer_index(me.rank())];
    const float8_cut<Blocks> cut(mine.size(), me.size());
    const std::size_t own = peer_index(me.rank()) * cut.piece;
    std::uint8_t* const codes = wire[peer_index(me.rank())].data();
    if (phase == 0) return enqueue_quantise<Blocks, T>(me, device_span<const T>(mine), cut, codes);
    if (phase == 1) return enqueue_quantised_fold<Blocks, Op>(me, peer_sources(wire, own), cut, codes + own, op);
    fold_sources<std::uint8_t> pieces;
    pieces.ranks = me.size();
    for (int r = 0; r < me.size(); ++r) pieces.listed[r] = wire[peer_index(r)].data() + peer_index(r) * cut.piece;
    enqueue_dequantise<Blocks, T>(me, pieces, cut, mine);
  }
};

}  // namespace detail

/// Combines the elements of all ranks in place, with 8-bit floats between the ranks: q(q(x0) op q(x1) op ...), where q is
/// the rule of `Blocks` and the combining is done in float.
///
/// Shapes: inout: as many elements on every rank; wire: a buffer for each rank, of float8_cut<Blocks>(count, size()).wire()
///         bytes or more
/// Order:  rank order; the same bits on all ranks
/// Errors: as the other calls of local_ranks; invalid_argument (wire)
template <float8_source T, class Op, class Blocks = float8_blocks<>>
void quantised_all_reduce(const local_ranks& world, peer_buffers<T> inout, peer_buffers<std::uint8_t> wire,
                          const Op& op, Blocks = {}) {
  check_reduction<Op, float>();
  world.run(detail::peer_quantised_all_reduce<T, Op, Blocks>{inout, wire, op});
}

}  // namespace cohort
