// SPDX-License-Identifier: BSL-1.0
// The rooted calls of a communicator that move or combine whole vectors: broadcast and reduce. A base of
// communicator<Backend>; checks the arguments and starts collective/broadcast.hpp and collective/reduce.hpp.
#pragma once

#include <cohort/collective/broadcast.hpp>
#include <cohort/collective/reduce.hpp>
#include <cohort/communicator/front.hpp>

#include <concepts>
#include <optional>

namespace cohort::detail {

template <class Communicator, backend Backend>
class rooted_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// Gives every rank the root's elements.
  ///
  /// Shapes:    inout: the same number of elements on every rank
  /// Needs:     the same root on every rank
  /// Completes: on the root when its last message is on its way, elsewhere when inout holds the elements
  /// Errors:    errc::invalid_argument (root), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  inout is borrowed until then
  /// Cost:      below 64 KiB ceil(log2 n) rounds; above, a pipeline that sends little more than one vector per rank
  /// Source:    binomial tree; Traeff, Optimal Broadcast Schedules in Logarithmic Time, 2024
  /// Example:   examples/03_broadcast.cpp
  template <range_like Buffer, call_option... Options>
  operation<> broadcast(Buffer&& inout, root from_rank, Options&&... options) const {
    check_output<Buffer>();
    using T = buffer_element_t<std::remove_reference_t<Buffer>>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::broadcast;
      const auto elements = view(inout);
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      calls().check_null(kind, "inout", elements.data(), elements.size());
      if (calls().alone(options_of(options...))) return operation<>::completed({});
      return collective::broadcast<transport_type>(
          enter<T>(kind, elements.size(), from_rank, 0, true, true, options_of(options...)),
          collective::bytes_of(elements.data()), elements.size(), sizeof(T));
    });
  }
  /// One value in, the root's value out.
  template <single_value T, call_option... Options>
  operation<T> broadcast(T value, root from_rank, Options&&... options) const {
    check_element<T>();
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::broadcast;
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      return collective::broadcast_value<transport_type, T>(
          enter<T>(kind, 1, from_rank, 0, true, true, options_of(options...)), value);
    });
  }
  template <class Buffer, std::integral Rank, class... Options>
  operation<> broadcast(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a root is a type, so that it cannot be taken for a count: write root{0}");
    return operation<>::completed({});
  }

  /// Combines the elements of all ranks on the root; no other rank's buffers are written.
  ///
  /// Result:    out[i] on the root = in_0[i] op in_1[i] op ... in rank order, or regrouped if op commutes
  /// Shapes:    in: the same count on every rank; out: that count on the root, ignored elsewhere
  /// Needs:     reduction<Op, T>, associative
  /// Order:     rank order, unless is_commutative<Op, T>; the same bits from run to run
  /// Completes: on the root when out holds the result, elsewhere when in may be reused
  /// Errors:    errc::invalid_argument (root, size of out), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; op is kept by the operation
  /// Cost:      ceil(log2 n) rounds; above 64 KiB a pipeline, about one vector per rank
  /// Example:   examples/05_reduce.cpp
  template <range_like In, range_like Out, class Op, call_option... Options>
  operation<> reduce(In&& in, Out&& out, Op op, root to_rank, Options&&... options) const {
    check_buffer<In>();
    check_output<Out>();
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_same_element<T, buffer_element_t<std::remove_reference_t<Out>>>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::reduce;
      const auto from = view(in);
      const auto to = view(out);
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      calls().check_null(kind, "in", from.data(), from.size());
      const bool here = calls().rank() == to_rank.rank;
      if (here) {
        calls().check_count(kind, "out", to.size(), from.size(), "the size of in");
        calls().check_null(kind, "out", to.data(), to.size());
        calls().check_overlap(kind, from.data(), to.data(), from.size_bytes(), to.size_bytes(), true);
      }
      return start_reduce<T>(from.data(), here ? to.data() : nullptr, from.size(), std::move(op), to_rank,
                             options_of(options...));
    });
  }
  /// In place: the root's elements become the result, those of the others stay what they are.
  template <range_like Buffer, class Op, call_option... Options>
    requires(!range_like<Op>)
  operation<> reduce(Buffer&& inout, Op op, root to_rank, Options&&... options)
  const {
    check_output<Buffer>();
    using T = buffer_element_t<std::remove_reference_t<Buffer>>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::reduce;
      const auto elements = view(inout);
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      calls().check_null(kind, "inout", elements.data(), elements.size());
      const bool here = calls().rank() == to_rank.rank;
      return start_reduce<T>(elements.data(), here ? elements.data() : nullptr, elements.size(), std::move(op), to_rank,
                             options_of(options...));
    });
  }
  /// One value in; on the root the combined value, elsewhere nothing.
  template <single_value T, class Op, call_option... Options>
  operation<std::optional<T>> reduce(T value, Op op, root to_rank, Options&&... options) const {
    check_element<T>();
    check_reduction<Op, T>();
    return guarded<std::optional<T>>([&]() -> operation<std::optional<T>> {
      constexpr auto kind = operation_kind::reduce;
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      return collective::reduce_value<transport_type, T, Op>(
          enter<T>(kind, 1, to_rank, functor_id<Op>, is_commutative<Op, T>, transport::never_throws<T, Op>,
                   options_of(options...)),
          value, std::move(op));
    });
  }
  template <class Buffer, class Op, std::integral Rank, class... Options>
  operation<> reduce(Buffer&&, Op, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a root is a type, so that it cannot be taken for a count: write root{0}");
    return operation<>::completed({});
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class T>
  [[nodiscard]] ticket enter(operation_kind kind, std::size_t count, root r, std::uint16_t functor, bool commutative,
                             bool may_be_native, call::options o) const {
    const auto how = calls().choose(kind, count * sizeof(T), commutative, may_be_native);
    const auto root = static_cast<std::uint16_t>(r.rank);
    return calls().enter(calls().sign(kind, how, element_type_id<T>, count, functor, root), std::move(o));
  }
  template <class T, class Op>
  operation<> start_reduce(const T* in, T* out, std::size_t count, Op op, root to_rank, call::options o) const {
    check_reduction<Op, T>();
    return collective::reduce<transport_type, T, Op>(
        enter<T>(operation_kind::reduce, count, to_rank, functor_id<Op>, is_commutative<Op, T>,
                 transport::never_throws<T, Op>, std::move(o)),
        in, out, count, std::move(op));
  }
};

}  // namespace cohort::detail
