// SPDX-License-Identifier: BSL-1.0
// The calls of a communicator that combine and leave a result on every rank: all_reduce, scan, exclusive_scan. A
// base of communicator<Backend>; starts collective/all_reduce.hpp and collective/scan.hpp.
#pragma once

#include <cohort/collective/all_reduce.hpp>
#include <cohort/collective/scan.hpp>
#include <cohort/communicator/front.hpp>

namespace cohort {
namespace detail {

template <class Communicator, backend Backend>
class reduction_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// Combines the elements of all ranks; every rank gets the result in place.
  ///
  /// Result:    inout[i] = x0[i] op x1[i] op ... in rank order, or regrouped if op commutes
  /// Shapes:    inout: the same count on every rank; of none, empty messages
  /// Needs:     reduction<Op, T>, associative; the same call, in the same order, on every rank
  /// Order:     rank order, unless is_commutative<Op, T>; the same bits on all ranks and from run to run
  /// Completes: when inout holds the result
  /// Errors:    errc::mismatch, peer_lost, peer_unresponsive, aborted, timed_out; inout is then unspecified
  /// Cancels:   stop{token} cancels here; the other ranks see errc::cancelled naming this one
  /// Lifetime:  inout is borrowed until then; op is kept by the operation
  /// Cost:      below 32 KiB ceil(log2 n) rounds of a whole vector; above, 2 ceil(log2 n) rounds and 2(n-1)/n vectors
  /// Source:    recursive doubling; Traeff, Optimal Non-pipelined Reduce-scatter and Allreduce, 2024
  /// Example:   examples/04_all_reduce.cpp
  template <range_like Buffer, class Op, call_option... Options>
    requires(!range_like<Op>)
  operation<> all_reduce(Buffer&& inout, Op op, Options&&... options)
  const {
    check_output<Buffer>();
    using T = buffer_element_t<std::remove_reference_t<Buffer>>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_reduce;
      const auto elements = view(inout);
      calls().require_open(kind);
      calls().check_null(kind, "inout", elements.data(), elements.size());
      return start_all_reduce<T>(elements.data(), elements.data(), elements.size(), std::move(op),
                                 options_of(options...));
    });
  }
  /// Out of place: `in` is not written.
  template <range_like In, range_like Out, class Op, call_option... Options>
  operation<> all_reduce(In&& in, Out&& out, Op op, Options&&... options) const {
    check_buffer<In>();
    check_output<Out>();
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_same_element<T, buffer_element_t<std::remove_reference_t<Out>>>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_reduce;
      const auto from = view(in);
      const auto to = view(out);
      check_pair(kind, from, to);
      return start_all_reduce<T>(from.data(), to.data(), from.size(), std::move(op), options_of(options...));
    });
  }
  /// One value in, one value out.
  template <single_value T, class Op, call_option... Options>
  operation<T> all_reduce(T value, Op op, Options&&... options) const {
    check_element<T>();
    check_reduction<Op, T>();
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::all_reduce;
      calls().require_open(kind);
      if (calls().alone(options_of(options...))) {
        combine_alone<T>(&value, &value, 1, op);
        return operation<T>::completed(value);
      }
      return collective::all_reduce_value<transport_type, T, Op>(enter<T, Op>(kind, 1, options_of(options...)), value,
                                                                 std::move(op));
    });
  }

  /// Gives rank r what ranks 0 .. r hold, combined in that order.
  ///
  /// Result:    out[i] on rank r = x0[i] op x1[i] op ... op xr[i]
  /// Shapes:    in, out: the same count on every rank; in place if they are the same buffer
  /// Needs:     reduction<Op, T>, associative
  /// Order:     rank order, always
  /// Completes: when out holds the result and in may be reused
  /// Errors:    errc::invalid_argument (size of out), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; op is kept by the operation
  /// Cost:      below 256 KiB ceil(log2 n) rounds of a whole vector; above, n - 2 + S rounds of one of S segments
  /// Source:    Hillis and Steele, Data Parallel Algorithms, 1986
  template <range_like In, range_like Out, class Op, call_option... Options>
  operation<> scan(In&& in, Out&& out, Op op, Options&&... options) const {
    check_buffer<In>();
    check_output<Out>();
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_same_element<T, buffer_element_t<std::remove_reference_t<Out>>>();
    check_reduction<Op, T>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::scan;
      const auto from = view(in);
      const auto to = view(out);
      check_pair(kind, from, to);
      return collective::scan<transport_type, T, Op>(enter<T, Op>(kind, from.size(), options_of(options...)),
                                                     from.data(), to.data(), from.size(), std::move(op));
    });
  }
  template <range_like Buffer, class Op, call_option... Options>
    requires(!range_like<Op>)
  operation<> scan(Buffer&& inout, Op op, Options&&... options)
  const {
    check_output<Buffer>();
    return scan(inout, inout, std::move(op), std::forward<Options>(options)...);
  }
  template <single_value T, class Op, call_option... Options>
  operation<T> scan(T value, Op op, Options&&... options) const {
    check_element<T>();
    check_reduction<Op, T>();
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::scan;
      calls().require_open(kind);
      return collective::scan_value<transport_type, T, Op>(enter<T, Op>(kind, 1, options_of(options...)), value,
                                                           std::move(op));
    });
  }

  /// Gives rank r what ranks 0 .. r-1 hold, combined in that order.
  ///
  /// Result:    out[i] on rank r = start op x0[i] op ... op x(r-1)[i]; on rank 0 start, which is the identity of
  ///            op unless initial{value} is given
  /// Shapes:    as scan
  /// Needs:     reduction<Op, T>, associative; identity<Op, T>, or initial{value}, the same on every rank
  /// Order:     rank order, always
  /// Errors:    as scan
  /// Lifetime:  as scan
  /// Cost:      below 256 KiB ceil(log2 n) rounds of a whole vector; above, n - 2 + S rounds of one of S segments
  template <range_like In, range_like Out, class Op, call_option... Options>
  operation<> exclusive_scan(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    require_identity<T, Op>();
    return start_exclusive_scan<T>(buffers<In, Out>{}, in, out, std::move(op), identity<Op, T>::value, true,
                                   std::forward<Options>(options)...);
  }
  template <range_like In, range_like Out, class Op, class T, call_option... Options>
  operation<> exclusive_scan(In&& in, Out&& out, Op op, initial<T> start, Options&&... options) const {
    using E = buffer_element_t<std::remove_reference_t<In>>;
    return start_exclusive_scan<E>(buffers<In, Out>{}, in, out, std::move(op), static_cast<E>(start.value), false,
                                   std::forward<Options>(options)...);
  }
  template <single_value T, class Op, call_option... Options>
  operation<T> exclusive_scan(T value, Op op, Options&&... options) const {
    require_identity<T, Op>();
    return start_exclusive_scan_value(value, std::move(op), static_cast<T>(identity<Op, T>::value), true,
                                      std::forward<Options>(options)...);
  }
  template <single_value T, class Op, class S, call_option... Options>
  operation<T> exclusive_scan(T value, Op op, initial<S> start, Options&&... options) const {
    return start_exclusive_scan_value(value, std::move(op), static_cast<T>(start.value), false,
                                      std::forward<Options>(options)...);
  }

 private:
  using front_type = front<Backend>;
  template <class In, class Out>
  struct buffers {};

  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class T, class Op>
  static constexpr void require_identity() noexcept {
    static_assert(
        has_identity<Op, T>,
        "cohort: no value is known that changes nothing under this functor, so rank 0 would get none: pass one as "
        "exclusive_scan(in, out, op, initial{value}), or specialise cohort::identity<Op, T>");
  }

  template <class A, class B>
  void check_pair(operation_kind kind, const A& from, const B& to) const {
    calls().require_open(kind);
    calls().check_count(kind, "out", to.size(), from.size(), "the size of in");
    calls().check_null(kind, "in", from.data(), from.size());
    calls().check_null(kind, "out", to.data(), to.size());
    calls().check_overlap(kind, from.data(), to.data(), from.size_bytes(), to.size_bytes(), true);
  }
  template <class T, class Op>
  static void combine_alone(const T* in, T* out, std::size_t count, const Op& op) {
    const reducer combine = make_reducer<T>(op);
    collective::contribute(combine, collective::bytes_of(in), collective::bytes_of(out), count, 1);
    collective::conclude(combine, collective::bytes_of(out), count, 1);
  }
  template <class T, class Op>
  [[nodiscard]] ticket enter(operation_kind kind, std::size_t count, call::options o) const {
    const auto how = calls().choose(kind, count * sizeof(T), is_commutative<Op, T>, transport::never_throws<T, Op>);
    return calls().enter(calls().sign(kind, how, element_type_id<T>, count, functor_id<Op>), std::move(o));
  }

  /// Needs: what the caller gave has been checked
  template <class T, class Op>
  operation<> start_all_reduce(const T* in, T* out, std::size_t count, Op op, call::options o) const {
    check_reduction<Op, T>();
    constexpr auto kind = operation_kind::all_reduce;
    if (calls().alone(o)) {
      combine_alone<T>(in, out, count, op);
      return operation<>::completed({});
    }
    if constexpr (native_all_reduce<Backend, T, Op>) {
      return Backend::all_reduce(enter<T, Op>(kind, count, std::move(o)), in, out, count, std::move(op));
    } else {
      return collective::all_reduce<transport_type, T, Op>(enter<T, Op>(kind, count, std::move(o)), in, out, count,
                                                           std::move(op));
    }
  }

  template <class T, class In, class Out, class Op, class... Options>
  operation<> start_exclusive_scan(buffers<In, Out>, std::remove_reference_t<In>& in, std::remove_reference_t<Out>& out,
                                   Op op, T start, bool neutral, Options&&... options) const {
    check_buffer<In>();
    check_output<Out>();
    check_same_element<T, buffer_element_t<std::remove_reference_t<Out>>>();
    check_reduction<Op, T>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::exclusive_scan;
      const auto from = view(in);
      const auto to = view(out);
      check_pair(kind, from, to);
      return collective::exclusive_scan<transport_type, T, Op>(enter<T, Op>(kind, from.size(), options_of(options...)),
                                                               from.data(), to.data(), from.size(), std::move(op),
                                                               start, neutral);
    });
  }
  template <class T, class Op, class... Options>
  operation<T> start_exclusive_scan_value(T value, Op op, T start, bool neutral, Options&&... options) const {
    check_element<T>();
    check_reduction<Op, T>();
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::exclusive_scan;
      calls().require_open(kind);
      return collective::exclusive_scan_value<transport_type, T, Op>(enter<T, Op>(kind, 1, options_of(options...)),
                                                                     value, std::move(op), start, neutral);
    });
  }
};

}  // namespace detail
}  // namespace cohort
