// SPDX-License-Identifier: BSL-1.0
// An all_reduce of ranks that read each other's device memory, with 8-bit floats between them: three phases, for
// local_ranks.hpp and ipc_ranks.hpp. For several GPUs: nccl/quantised_all_reduce.hpp, with the same bits.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/gpu/ipc_ranks.hpp>
#include <cohort/gpu/launch_quantised.hpp>
#include <cohort/gpu/local_ranks.hpp>
#include <cohort/gpu/peer_rank.hpp>
#include <cohort/gpu/peer_schedule.hpp>
#include <cohort/gpu/shared_buffer.hpp>
#include <cohort/task.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort {
namespace detail {

template <class T, class Op, class Blocks>
void enqueue_quantise(const peer_rank& me, device_span<const T> in, const float8_cut<Blocks>& cut, std::uint8_t* wire) {
  write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(in, cut, wire, me.stream());
}
template <class T, class Op, class Blocks>
void enqueue_quantised_fold(const peer_rank& me, const fold_sources<std::uint8_t>& from, const float8_cut<Blocks>& cut,
                            std::uint8_t* out, const Op& op) {
  write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(from, cut, out, op, me.stream());
}
template <class T, class Op, class Blocks>
void enqueue_dequantise(const peer_rank& me, const fold_sources<std::uint8_t>& pieces, const float8_cut<Blocks>& cut,
                        device_span<T> out) {
  write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>::in_one_cu_file(pieces, cut, out, me.stream());
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
    if (phase == 0) return enqueue_quantise<T, Op, Blocks>(me, device_span<const T>(mine), cut, codes);
    if (phase == 1) {
      return enqueue_quantised_fold<T, Op, Blocks>(me, peer_sources(wire, own), cut, codes + own, op);
    }
    fold_sources<std::uint8_t> pieces;
    pieces.ranks = me.size();
    for (int r = 0; r < me.size(); ++r) pieces.listed[r] = wire[peer_index(r)].data() + peer_index(r) * cut.piece;
    enqueue_dequantise<T, Op, Blocks>(me, pieces, cut, mine);
  }
};

}  // namespace detail

/// Combines the elements of all ranks in place, with 8-bit floats between the ranks: q(q(x0) op q(x1) op ...), where q is
/// the rule of `Blocks` and the combining is done in float.
///
/// Result: the same bits on every rank, and those of communicator<nccl>
/// Shapes: inout: as many elements on every rank; wire: a buffer for each rank, of float8_cut<Blocks>(count, size()).wire()
///         bytes or more
/// Needs:  reduction<Op, float>; where nvcc does not compile the call: COHORT_INSTANTIATE_QUANTISED(T, Op, Blocks) in one
///         .cu of the program. In a .cu: <cohort/gpu/quantised_fold.cuh>
/// Order:  rank order
/// Errors: as the other calls of local_ranks; invalid_argument (wire)
template <float8_source T, class Op, class Blocks = float8_blocks<>>
void quantised_all_reduce(const local_ranks& world, peer_buffers<T> inout, peer_buffers<std::uint8_t> wire,
                          const Op& op, Blocks = {}) {
  check_reduction<Op, float>();
  world.run(detail::peer_quantised_all_reduce<T, Op, Blocks>{inout, wire, op});
}

/// The same between processes.
///
/// Shapes:    as above; every rank shares a wire of as many bytes, once for all calls of that size or a smaller one
/// Completes: as the other calls of ipc_ranks
/// Errors:    as the other calls of ipc_ranks; invalid_argument (wire) on every rank alike
/// Lifetime:  both buffers are borrowed until it has been awaited and stream() has come that far
/// Cost:      four barriers of the host; each rank reads about two bytes for each element from the others together
/// Example:
///   const cohort::float8_cut<cohort::float8_blocks<>> cut(n, ranks.size());
///   cohort::device_buffer<std::uint8_t> codes(cut.wire());
///   auto wire = co_await ranks.share(codes.device_view());
///   co_await quantised_all_reduce(ranks, grad, wire, cohort::sum{});
template <float8_source T, class Op, class Blocks = float8_blocks<>, class Backend>
task<> quantised_all_reduce(const ipc_ranks<Backend>& world, const shared_buffer<T>& inout,
                            const shared_buffer<std::uint8_t>& wire, Op op, Blocks = {}) {
  check_reduction<Op, float>();
  return world.run(detail::peer_quantised_all_reduce<T, Op, Blocks>{inout.all(), wire.all(), op});
}

}  // namespace cohort
