// SPDX-License-Identifier: BSL-1.0
// A training step over ranks, with each rank keeping one part of the optimiser: the gradients are exchanged in the type of
// the model and averaged in float, the norm is that of all ranks, each rank steps its own weights, and all get the new
// ones. Nothing in it waits on the host.
#pragma once

#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/adamw.cuh>

#include <cstddef>
#include <utility>
#include <vector>

namespace cohort {

/// Exchanges the blocks of `in` as they are, and combines this rank's own by one fused fold.
///
/// Result:    out[i] = after(before(x0[r][i]) op ...), where r = rank(), rounded once to Out; *norm.sum, where it is given,
///            the squared norm of out, of this rank alone; 0 where out is empty
/// Shapes:    in: size() times the count of out, the same on every rank
/// Completes: on the stream
/// Errors:    as reduce_scatter
/// Cost:      (n-1)/n of `in` on the wire, in the type In; one pass of memory
template <class Acc, class In, class Out, class Op, class Prologue, class Epilogue, class... Options>
stream_ordered fused_reduce_scatter(const communicator<nccl>& world, device_span<const In> in, device_span<Out> out,
                                    const Op& op, const Prologue& before, const Epilogue& after,
                                    const squared_norm& norm, const Options&... options) {
  constexpr const char* name = "fused_reduce_scatter";
  const detail::nccl_front& calls = world.calls();
  return calls.start(name, detail::device_options_of(options...), [&](detail::nccl_party& p, cudaStream_t s) {
    const auto n = static_cast<std::size_t>(p.size());
    calls.check_count(name, "in", in.size(), out.size() * n, "the size of out times the ranks");
    calls.check_memory(name, "in", in);
    calls.check_memory(name, "out", out);
    detail::require_ungrouped(p, name);
    const auto own = static_cast<std::size_t>(p.rank());
    // Slots that start on 16 bytes, whatever the size of a block.
    const std::size_t stride = (out.size() + 15) / 16 * 16;
    In* slots = nullptr;
    if (n > 1 && !out.empty()) {
      slots = reinterpret_cast<In*>(p.scratch(s, n * stride * sizeof(In), name));
      detail::in_nccl_group(p, name, [&] {
        for (std::size_t r = 0; r < n; ++r) {
          if (r == own) continue;
          detail::send_bytes(p, name, in.data() + r * out.size(), out.size() * sizeof(In), static_cast<int>(r), s);
          detail::receive_bytes(p, name, slots + r * stride, out.size() * sizeof(In), static_cast<int>(r), s);
        }
      });
    }
    if (out.empty() && norm.sum == nullptr) return;
    launch_fused_fold<Acc>(fold_sources<In>::of_slots(slots, stride, p.size(), in.data() + own * out.size(), p.rank()),
                           out.data(), out.size(), op, before, after, norm, s);
  });
}

/// The optimiser of a model whose weights and gradients are one buffer of `Low` each, sharded over the ranks.
///
/// Needs:    a size that is a multiple of the ranks: pad the buffers
/// Lifetime: keeps this rank's part of master weights and moments; the communicator must outlive it
template <class Low>
class sharded_adamw {
 public:
  /// Begins with the weights as they are on this rank, which must be the same on all.
  ///
  /// Errors: not_a_member; invalid_argument (a size that is no multiple of the ranks); out_of_memory
  sharded_adamw(const communicator<nccl>& world, device_span<const Low> weights, const adamw_settings& s, on where)
      : world_(&world), settings_(s) {
    world.calls().require_member("sharded_adamw");
    const device_scope here(world.on_device());
    part_ = world.calls().divide("sharded_adamw", "weights", weights.size(), "a padded buffer");
    master_ = device_buffer<float>(part_);
    first_ = device_buffer<float>(part_);
    second_ = device_buffer<float>(part_);
    gradient_ = device_buffer<float>(part_);
    low_ = device_buffer<Low>(part_);
    numbers_ = device_buffer<float>(1 + squared_norm_parts);
    state_ = device_buffer<adamw_state>(1);
    zero(first_.data(), part_ * sizeof(float), where);
    zero(second_.data(), part_ * sizeof(float), where);
    zero(state_.data(), sizeof(adamw_state), where);
    fold_sources<Low> own;
    own.ranks = 1;
    own.listed[0] = weights.data() + static_cast<std::size_t>(world.rank()) * part_;
    launch_fused_fold<float>(own, master_.data(), part_, sum{}, unchanged{}, unchanged{}, {}, where.stream);
  }

  /// One step.
  ///
  /// Result:    `weights`, the same on all ranks
  /// Completes: on the stream; it may be captured after it has been called once
  /// Cost:      one reduce_scatter and one all_gather of the model's type, an all_reduce of one float, two passes of
  ///            this rank's part
  stream_ordered step(device_span<const Low> gradients, device_span<Low> weights, on where) {
    const device_scope here(world_->on_device());
    float* const norm = numbers_.data();
    const float share = 1.0f / static_cast<float>(world_->size());
    static_cast<void>(fused_reduce_scatter<float>(*world_, gradients, gradient_.device_view(), sum{}, unchanged{},
                                                  times{share}, squared_norm{norm, norm + 1}, where));
    static_cast<void>(world_->all_reduce(device_span<float>(norm, 1), sum{}, where));
    begin_adamw(state_.device_view(), device_span<const float>(norm, 1), settings_, where.stream);
    const adamw_buffers<Low> b{master_.device_view(), first_.device_view(), second_.device_view(),
                               std::as_const(gradient_).device_view(), low_.device_view()};
    launch_adamw(b, std::as_const(state_).device_view(), settings_, where.stream);
    return world_->all_gather(low_, weights, where);
  }

  /// This rank's master weights, for checkpoints.
  [[nodiscard]] device_span<const float> master() const noexcept { return master_.device_view(); }

 private:
  static void zero(void* p, std::size_t bytes, on where) {
    if (bytes > 0) detail::check_cuda(cudaMemsetAsync(p, 0, bytes, where.stream), "cudaMemsetAsync");
  }

  const communicator<nccl>* world_;
  adamw_settings settings_;
  std::size_t part_ = 0;
  device_buffer<float> master_{};
  device_buffer<float> first_{};
  device_buffer<float> second_{};
  device_buffer<float> gradient_{};
  device_buffer<Low> low_{};
  device_buffer<float> numbers_{};
  device_buffer<adamw_state> state_{};
};

}  // namespace cohort
