// SPDX-License-Identifier: BSL-1.0
// One number out of the elements of all ranks: a function of each element, combined on the device and then over the ranks.
// A loss, a norm, a count, without the host waiting in between.
#pragma once

#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/fold.cuh>

#include <cub/device/device_reduce.cuh>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace cohort {

/// result[0] = f(x0) op f(x1) op ... over the elements of rank 0, rank 1, ...
///
/// Result:    one element, the same on every rank, on the device
/// Shapes:    in: any count, another on every rank if need be, also none; result: one element
/// Needs:     f and op run on the device; op is associative and has an identity<Op, Out>
/// Order:     on one rank as CUB combines, the same bits from run to run; over the ranks as all_reduce
/// Completes: on the stream
/// Errors:    as all_reduce
/// Cost:      one pass of memory and an all_reduce of one element
template <class T, class Out, class Function, class Op, class... Options>
stream_ordered transform_reduce(const communicator<nccl>& world, device_span<const T> in, device_span<Out> result,
                                const Function& f, const Op& op, const Options&... options) {
  static_assert(has_identity<Op, Out>,
                "cohort: a rank without elements needs the value that changes nothing under this functor: specialise "
                "cohort::identity<Op, Out> with a static constexpr Out value");
  check_reduction<Op, Out>();
  constexpr const char* name = "transform_reduce";
  const detail::nccl_front& calls = world.calls();
  return calls.start(name, detail::device_options_of(options...), [&](detail::nccl_party& p, cudaStream_t s) {
    calls.check_memory(name, "in", in);
    calls.check_count(name, "result", result.size(), 1, "one result");
    calls.check_memory(name, "result", result);
    detail::require_ungrouped(p, name);
    if (in.size() > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
      calls.refuse(name, "in has " + std::to_string(in.size()) + " elements: expected what memory has room for");
    }
    const Out start = identity<Op, Out>::value;
    const auto combine = detail::make_applied<Out>(op);
    const auto n = static_cast<std::int64_t>(in.size());
    std::size_t bytes = 0;
    const auto reduce = [&](void* scratch) {
      detail::check_cuda(
          cub::DeviceReduce::TransformReduce(scratch, bytes, in.data(), result.data(), n, combine, f, start, s),
          "cub::DeviceReduce::TransformReduce");
    };
    reduce(nullptr);
    reduce(p.scratch(s, bytes, name));
    static_cast<void>(world.all_reduce(result, op, on{s}));
  });
}

}  // namespace cohort
