// SPDX-License-Identifier: BSL-1.0
// An all_reduce that sends 8-bit floats: quantise, exchange, one fold that dequantises, combines in float and quantises
// again, all_gather, dequantise. For links that are slower than memory; gpu/block_float8.hpp says what is lost.
#pragma once

#include <cohort/backend/nccl.hpp>
#include <cohort/check_reduction.hpp>
#include <cohort/gpu/launch_quantised.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace cohort {

/// Combines the elements of all ranks in place: q(q(x0) op q(x1) op ...), where q is the rule of `Blocks` and the combining
/// is done in float.
///
/// Result:    the same bits on every rank, whatever the sizes of chunks; of a world of one, its elements by the rule
/// Shapes:    inout: the same count on every rank, of float, half or bfloat16
/// Needs:     reduction<Op, float>; outside of a group. Where nvcc does not compile the call:
///            COHORT_INSTANTIATE_QUANTISED(T, Op, Blocks) in one .cu of the program. In a .cu: <cohort/gpu/quantised_fold.cuh>
/// Order:     rank order
/// Completes: on the stream; it may be captured after it has been called once
/// Errors:    as all_reduce
/// Cost:      2(n-1)/n bytes on the wire for each element, and one in Blocks::elements more; five launches for each chunk of
///            set_fold_sizes(). Exchange and fold do not overlap
/// Source:    Wang et al., ZeRO++: Extremely Efficient Collective Communication for Giant Model Training, 2023 (qgZ)
template <float8_source T, class Op, class Blocks, class... Options>
stream_ordered quantised_all_reduce(const communicator<nccl>& world, device_span<T> inout, const Op& op, Blocks,
                                    const Options&... options) {
  check_reduction<Op, float>();
  using kernels = write_COHORT_INSTANTIATE_QUANTISED<T, Op, Blocks>;
  constexpr const char* name = "quantised_all_reduce";
  const detail::nccl_front& calls = world.calls();
  return calls.start(name, detail::device_options_of(options...), [&](detail::nccl_party& p, cudaStream_t s) {
    calls.check_memory(name, "inout", inout);
    detail::require_ungrouped(p, name);
    if (inout.empty()) return;
    const auto n = static_cast<std::size_t>(p.size());
    const auto own = static_cast<std::size_t>(p.rank());
    // A piece of at most chunk_bytes for each rank, and no more than 64 MiB in all.
    constexpr std::size_t most = std::size_t{64} << 20;
    const std::size_t piece = std::clamp<std::size_t>(p.chunk_bytes, 4096, std::max<std::size_t>(65536, most / n));
    const std::size_t chunk = piece / (Blocks::elements + 1) * Blocks::elements * n;
    const float8_cut<Blocks> longest(std::min(chunk, inout.size()), p.size());
    auto* const sent = reinterpret_cast<std::uint8_t*>(p.scratch(s, 2 * longest.wire(), name));
    for (std::size_t at = 0; at < inout.size(); at += chunk) {
      const device_span<T> now = inout.subspan(at, std::min(chunk, inout.size() - at));
      const float8_cut<Blocks> cut(now.size(), p.size());
      std::uint8_t* const received = sent + cut.wire();
      std::uint8_t* const mine = sent + own * cut.piece;
      kernels::in_one_cu_file(device_span<const T>(now), cut, sent, s);
      if (n > 1) {
        detail::in_nccl_group(p, name, [&] {
          for (std::size_t r = 0; r < n; ++r) {
            if (r == own) continue;
            detail::send_bytes(p, name, sent + r * cut.piece, cut.piece, static_cast<int>(r), s);
            detail::receive_bytes(p, name, received + r * cut.piece, cut.piece, static_cast<int>(r), s);
          }
        });
      }
      // Over the codes that this rank would have sent to itself: where the all_gather takes it from.
      kernels::in_one_cu_file(fold_sources<std::uint8_t>::of_slots(received, cut.piece, p.size(), mine, p.rank()), cut,
                              mine, op, s);
      if (n > 1) {
        p.check(ncclAllGather(mine, sent, cut.piece, detail::nccl_bytes::type, p.comm(), s), "ncclAllGather", name);
      }
      kernels::in_one_cu_file(fold_sources<std::uint8_t>::of_slots(sent, cut.piece, p.size(), nullptr, -1), cut, now,
                              s);
    }
  });
}

}  // namespace cohort
