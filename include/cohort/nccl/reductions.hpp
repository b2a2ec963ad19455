// SPDX-License-Identifier: BSL-1.0
// The calls of communicator<nccl> that combine: all_reduce, reduce, reduce_scatter, scan and exclusive_scan. A base of the
// communicator. NCCL's own reductions where the table of reduction_map.hpp has them, else exchange and fold.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/nccl/fold_path.hpp>
#include <cohort/nccl/front.hpp>
#include <cohort/nccl/moves.hpp>
#include <cohort/nccl/reduction_map.hpp>
#include <cohort/nccl/scaled_sum.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cohort::detail {

template <class Communicator>
class nccl_reduction_calls {
 public:
  /// Combines the elements of all ranks; every rank gets the result in place.
  ///
  /// Result:    inout[i] = x0[i] op x1[i] op ...
  /// Shapes:    inout: the same count on every rank
  /// Needs:     reduction<Op, T>. In a .cpp, for what NCCL has not (nccl_reduces<Op, T>) and for premultiplied_sum, which
  ///            a world of one folds: COHORT_INSTANTIATE_FOLD(T, Op) in one .cu of the program
  /// Order:     of a fold, rank order, the same bits on all ranks and from run to run; NCCL's own order else, the same
  ///            bits on all ranks
  /// Completes: on the stream
  /// Errors:    invalid_argument (memory), the communicator's first cause, timed_out, peer_lost, io_error
  /// Cost:      a fold: up to one_shot_bytes two launches and n-1 vectors, above 2(n-1)/n vectors like a ring
  template <class Buffer, class Op, class... Options>
    requires(!meant_as_buffer<Op>)
  stream_ordered all_reduce(Buffer&& inout, Op op, Options&&... options)
  const {
    check_device_output<Buffer>();
    const auto all = view_on_device(inout);
    return start_all_reduce<device_element_t<Buffer>>("inout", all, all, op, device_options_of(options...));
  }
  /// Out of place: `in` is not written.
  template <class In, meant_as_buffer Out, class Op, class... Options>
  stream_ordered all_reduce(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = checked<In, Out>;
    return start_all_reduce<T>("in", view_on_device(in), view_on_device(out), op, device_options_of(options...));
  }

  /// Combines the elements of all ranks for the root.
  ///
  /// Result:    out on the root as of all_reduce; nothing elsewhere, where out is ignored
  /// Shapes:    in: the same count on every rank; out: that count on the root; in place if they are the same buffer
  /// Errors:    as all_reduce; invalid_argument (root, size of out)
  template <class In, meant_as_buffer Out, class Op, class... Options>
  stream_ordered reduce(In&& in, Out&& out, Op op, root to_rank, Options&&... options) const {
    using T = checked<In, Out>;
    check_reduction<Op, T>();
    constexpr const char* name = "reduce";
    const auto enqueue = [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      device_span<T> to = view_on_device(out);
      calls().check_root(name, to_rank);
      calls().check_memory(name, "in", from);
      if (p.rank() == to_rank.rank) {
        calls().check_count(name, "out", to.size(), from.size(), "the size of in");
        calls().check_memory(name, "out", to);
        calls().check_overlap(name, from, to, true);
      }
      reduce_to(p, name, from, to, op, to_rank.rank, s);
    };
    return calls().start_by_nccl(name, device_options_of(options...), enqueue, by_nccl<T, Op>());
  }
  /// In place: inout is the result on the root, and unspecified elsewhere.
  template <class Buffer, class Op, class... Options>
    requires(!meant_as_buffer<Op>)
  stream_ordered reduce(Buffer&& inout, Op op, root to_rank, Options&&... options)
  const {
    check_device_output<Buffer>();
    return reduce(inout, view_on_device(inout), std::move(op), to_rank, std::forward<Options>(options)...);
  }

  /// Combines the elements of all ranks and leaves each rank its own block of the result.
  ///
  /// Result:    out[i] = x0[r][i] op x1[r][i] op ..., where r = rank() and xk[r] is block r of in on rank k
  /// Shapes:    in: size() times the count of out, the same on every rank; out may be block rank() of in
  /// Errors:    as all_reduce; invalid_argument (size of in)
  template <class In, class Out, class Op, class... Options>
  stream_ordered reduce_scatter(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = checked<In, Out>;
    check_reduction<Op, T>();
    constexpr const char* name = "reduce_scatter";
    const auto enqueue = [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      const auto n = static_cast<std::size_t>(p.size());
      calls().check_count(name, "in", from.size(), to.size() * n, "the size of out times the ranks");
      check_both(name, from, to, static_cast<std::size_t>(p.rank()) * to.size());
      scatter_reduced(p, name, from, to, op, s);
    };
    return calls().start_by_nccl(name, device_options_of(options...), enqueue, by_nccl<T, Op>());
  }
  /// The same with a count for each rank, known to all of them.
  ///
  /// Shapes: in: the sum of counts; out: counts[rank()] elements
  /// Cost:   an exchange and a fold, for every functor: NCCL's own has one count
  template <class In, class Out, device_counts Counts, class Op, class... Options>
  stream_ordered reduce_scatter_v(In&& in, Out&& out, const Counts& counts, Op op, Options&&... options) const {
    using T = checked<In, Out>;
    check_reduction<Op, T>();
    constexpr const char* name = "reduce_scatter_v";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      const auto own = static_cast<std::size_t>(p.rank());
      fold_job<T, Op> job{name, blocks_by_counts<const T>(calls(), name, "in", "counts", from, counts),
                          device_blocks<T>(static_cast<std::size_t>(p.size())), &op, after_fold::stays};
      calls().check_count(name, "out", to.size(), job.in[own].size(), "counts[rank()]");
      check_both(name, from, to, static_cast<std::size_t>(job.in[own].data() - from.data()));
      if (p.size() == 1) return fold_alone(from, to, op, s);
      require_ungrouped(p, name);
      job.out[own] = to;
      fold_pipeline<T, Op>(p, job, s).run();
    });
  }

  /// The same of a list of buffers, one for each rank.
  ///
  /// Shapes: in: size() buffers; buffer r of the same count on every rank, that of out on rank r
  /// Cost:   as reduce_scatter_v
  template <device_list In, class Out, class Op, class... Options>
  stream_ordered reduce_scatter(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = checked_list_element<Out, In>;
    check_device_output<Out>();
    check_reduction<Op, T>();
    constexpr const char* name = "reduce_scatter";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<T> to = view_on_device(out);
      const auto own = static_cast<std::size_t>(p.rank());
      fold_job<T, Op> job{name, blocks_of_list<const T>(calls(), name, "in", in),
                          device_blocks<T>(static_cast<std::size_t>(p.size())), &op, after_fold::stays};
      calls().check_count(name, "out", to.size(), job.in[own].size(), "the size of in[rank()]");
      calls().check_memory(name, "out", to);
      for (const device_span<const T>& block : job.in) calls().check_overlap(name, block, to, &block == &job.in[own]);
      if (p.size() == 1) return fold_alone(job.in[own], to, op, s);
      require_ungrouped(p, name);
      job.out[own] = to;
      fold_pipeline<T, Op>(p, job, s).run();
    });
  }

  /// Gives rank r what ranks 0 .. r hold, combined in that order.
  ///
  /// Shapes:    in, out: the same count on every rank; in place if they are the same buffer
  /// Needs:     a fold for every functor: COHORT_INSTANTIATE_FOLD in a .cu when the call is in a .cpp
  /// Errors:    as all_reduce
  /// Cost:      an all_gather and a fold of r + 1 operands
  template <class In, meant_as_buffer Out, class Op, class... Options>
  stream_ordered scan(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = checked<In, Out>;
    check_reduction<Op, T>();
    constexpr const char* name = "scan";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      const T* const slots = gathered_for_scan<T>(p, name, from, to, s);
      launch_fold<T, Op>(fold_sources<T>::of_slots(slots, from.size(), p.rank() + 1, nullptr, -1), to.data(), to.size(),
                         op, p.size(), s);
    });
  }
  template <class Buffer, class Op, class... Options>
    requires(!meant_as_buffer<Op>)
  stream_ordered scan(Buffer&& inout, Op op, Options&&... options)
  const {
    check_device_output<Buffer>();
    return scan(inout, view_on_device(inout), std::move(op), std::forward<Options>(options)...);
  }

  /// Gives rank r what ranks 0 .. r-1 hold, combined in that order; rank 0 gets the identity of op, or what is given.
  ///
  /// Needs: identity<Op, T>, or initial{value}, the same on every rank; a functor with neither prepare nor finish; the rest
  ///        as scan
  template <class In, class Out, class Op, class... Options>
  stream_ordered exclusive_scan(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = checked<In, Out>;
    static_assert(
        has_identity<Op, T>,
        "cohort: no value is known that changes nothing under this functor, so rank 0 would get none: pass one as "
        "exclusive_scan(in, out, op, initial{value}), or specialise cohort::identity<Op, T> with a static constexpr T "
        "value");
    return start_exclusive_scan<T>(view_on_device(in), view_on_device(out), op, identity<Op, T>::value,
                                   device_options_of(options...));
  }
  template <class Value, class Op>
  stream_ordered exclusive_scan(Value&&, Op) const {
    static_cast<void>(refuse_returned_values<Value>());
    return refused_operation();
  }
  template <class In, class Out, class Op, class S, class... Options>
  stream_ordered exclusive_scan(In&& in, Out&& out, Op op, initial<S> start, Options&&... options) const {
    using T = checked<In, Out>;
    return start_exclusive_scan<T>(view_on_device(in), view_on_device(out), op, static_cast<T>(start.value),
                                   device_options_of(options...));
  }

 private:
  [[nodiscard]] const nccl_front& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class In, class Out>
  using checked = checked_device_element<In, Out>;

  /// `place`: where in `in` the result may lie.
  template <class T>
  void check_both(const char* operation, device_span<const T> in, device_span<T> out, std::size_t place) const {
    calls().check_memory(operation, "in", in);
    calls().check_memory(operation, "out", out);
    if (out.data() != in.data() + place) calls().check_overlap(operation, in, out, false);
  }

  /// Whether NCCL's own collective does it all.
  template <class T, class Op>
  [[nodiscard]] bool by_nccl() const noexcept {
    return nccl_reduces<Op, T> && calls().size() > 1;
  }

  /// NCCL's own operation, for as long as it is needed to enqueue.
  template <class T, class Op>
  using native_operation = std::conditional_t<nccl_reduction_of<Op, T>().scaled, scaled_sum<T, applied<Op, T>>,
                                              plain_operation<nccl_reduction_of<Op, T>().op>>;

  template <class T, class Op>
  stream_ordered start_all_reduce(const char* first, device_span<const T> in, device_span<T> out, const Op& op,
                                  const device_options& o) const {
    check_reduction<Op, T>();
    constexpr const char* name = "all_reduce";
    const auto enqueue = [&](nccl_party& p, cudaStream_t s) {
      calls().check_memory(name, first, in);
      if (in.data() != out.data() || in.size() != out.size()) {
        calls().check_count(name, "out", out.size(), in.size(), "the size of in");
        calls().check_memory(name, "out", out);
        calls().check_overlap(name, in, out, true);
      }
      if (in.empty()) return;
      constexpr nccl_reduction how = nccl_reduction_of<Op, T>();
      // One rank has nothing to combine, and NCCL's own way of doing that is not to be trusted (nccl issue 1950).
      if (p.size() == 1) return alone(in, out, op, s);
      if constexpr (how.native) {
        const native_operation<T, Op> native(p, name, op);
        p.check(ncclAllReduce(in.data(), out.data(), in.size() * how.scalars, how.type, native.get(), p.comm(), s),
                "ncclAllReduce", name);
      } else {
        require_ungrouped(p, name);
        if (in.size_bytes() <= p.one_shot_bytes) return fold_one_shot(p, name, in, out, 0, op, s);
        const fold_job<T, Op> job{name, cut_for_ranks(in, p.size()), cut_for_ranks(out, p.size()), &op,
                                  after_fold::goes_to_all};
        fold_pipeline<T, Op>(p, job, s).run();
      }
    };
    return calls().start_by_nccl(name, o, enqueue, by_nccl<T, Op>());
  }

  template <class T, class Op>
  stream_ordered start_exclusive_scan(device_span<const T> in, device_span<T> out, const Op& op, const T& start,
                                      const device_options& o) const {
    check_reduction<Op, T>();
    static_assert(!has_prepare<Op, T> && !has_finish<Op, T>,
                  "cohort: a functor with prepare or finish has no exclusive_scan on this backend: multiply or divide "
                  "before or after it");
    constexpr const char* name = "exclusive_scan";
    return calls().start(name, o, [&](nccl_party& p, cudaStream_t s) {
      const T* const slots = gathered_for_scan<T>(p, name, in, out, s);
      launch_fold_from<T, Op>(start, fold_sources<T>::of_slots(slots, in.size(), p.rank(), nullptr, -1), out.data(),
                              out.size(), op, s);
    });
  }

  template <class T, class Op>
  static void alone(device_span<const T> in, device_span<T> out, const Op& op, cudaStream_t s) {
    if constexpr (nccl_reduces<Op, T> && !nccl_reduction_of<Op, T>().scaled) {
      // An average of one is that one.
      if (in.data() == out.data() || in.empty()) return;
      check_cuda(cudaMemcpyAsync(out.data(), in.data(), in.size_bytes(), cudaMemcpyDeviceToDevice, s),
                 "cudaMemcpyAsync");
    } else {
      fold_alone(in, out, op, s);
    }
  }

  template <class T, class Op>
  void reduce_to(nccl_party& p, const char* name, device_span<const T> in, device_span<T> out, const Op& op, int root,
                 cudaStream_t s) const {
    if (in.empty()) return;
    constexpr nccl_reduction how = nccl_reduction_of<Op, T>();
    if (p.size() == 1) return alone(in, out, op, s);
    if constexpr (how.native) {
      const native_operation<T, Op> native(p, name, op);
      p.check(ncclReduce(in.data(), out.data(), in.size() * how.scalars, how.type, native.get(), root, p.comm(), s),
              "ncclReduce", name);
    } else {
      require_ungrouped(p, name);
      // Off the root the results of this rank's block lie in scratch memory of their own.
      const bool here = p.rank() == root;
      fold_job<T, Op> job{name, cut_for_ranks(in, p.size()), {}, &op, after_fold::goes_to_root, root};
      if (here) {
        job.out = cut_for_ranks(out, p.size());
      } else {
        const auto own = static_cast<std::size_t>(p.rank());
        job.out.resize(static_cast<std::size_t>(p.size()));
        job.out[own] = {reinterpret_cast<T*>(p.result_scratch(s, job.in[own].size_bytes(), name)), job.in[own].size()};
      }
      fold_pipeline<T, Op>(p, job, s).run();
    }
  }

  template <class T, class Op>
  void scatter_reduced(nccl_party& p, const char* name, device_span<const T> in, device_span<T> out, const Op& op,
                       cudaStream_t s) const {
    if (out.empty()) return;
    constexpr nccl_reduction how = nccl_reduction_of<Op, T>();
    if (p.size() == 1) return alone(in, out, op, s);
    if constexpr (how.native) {
      const native_operation<T, Op> native(p, name, op);
      p.check(ncclReduceScatter(in.data(), out.data(), out.size() * how.scalars, how.type, native.get(), p.comm(), s),
              "ncclReduceScatter", name);
    } else {
      require_ungrouped(p, name);
      const auto n = static_cast<std::size_t>(p.size());
      const auto own = static_cast<std::size_t>(p.rank());
      fold_job<T, Op> job{name, {}, device_blocks<T>(n), &op, after_fold::stays};
      for (std::size_t r = 0; r < n; ++r) job.in.push_back(in.subspan(r * out.size(), out.size()));
      job.out[own] = out;
      fold_pipeline<T, Op>(p, job, s).run();
    }
  }

  /// The elements of all ranks, behind each other.
  template <class T>
  [[nodiscard]] const T* gathered_for_scan(nccl_party& p, const char* name, device_span<const T> in, device_span<T> out,
                                           cudaStream_t s) const {
    calls().check_count(name, "out", out.size(), in.size(), "the size of in");
    calls().check_memory(name, "in", in);
    calls().check_memory(name, "out", out);
    calls().check_overlap(name, in, out, true);
    if (p.size() == 1 || in.empty()) return in.data();
    require_ungrouped(p, name);
    auto* const slots = reinterpret_cast<T*>(p.scratch(s, static_cast<std::size_t>(p.size()) * in.size_bytes(), name));
    p.check(ncclAllGather(in.data(), slots, in.size_bytes(), nccl_bytes::type, p.comm(), s), "ncclAllGather", name);
    return slots;
  }
};

}  // namespace cohort::detail
