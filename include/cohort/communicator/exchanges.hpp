// SPDX-License-Identifier: BSL-1.0
// The calls of a communicator in which every rank gives and gets: barrier, reduce_scatter, all_to_all and their
// forms in _v. A base of communicator<Backend>; starts collective/reduce_scatter.hpp and all_to_all.hpp.
#pragma once

#include <cohort/collective/all_to_all.hpp>
#include <cohort/collective/barrier.hpp>
#include <cohort/collective/move_at_once.hpp>
#include <cohort/collective/negotiate.hpp>
#include <cohort/collective/reduce_scatter.hpp>
#include <cohort/communicator/blocks.hpp>

#include <vector>

namespace cohort::detail {

template <class Communicator, backend Backend>
class exchange_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// Completes when every rank has called it.
  ///
  /// Errors: errc::peer_lost, aborted, timed_out naming who has not come
  /// Cost:   ceil(log2 n) rounds of empty messages
  /// Source: dissemination; Hensgen, Finkel and Manber, 1988
  template <call_option... Options>
  operation<> barrier(Options&&... options) const {
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::barrier;
      calls().require_open(kind);
      if (calls().alone(options_of(options...))) return operation<>::completed({});
      return collective::barrier<transport_type>(
          calls().enter(calls().sign(kind, calls().choose(kind, 0), 0, 0), options_of(options...)));
    });
  }
  /// A barrier that rank 0 watches: when it times out, the error of every rank lists all that have not arrived, with
  /// their hosts and what each called last. For finding out who hangs; `barrier` names them too, from what the ranks'
  /// heartbeats tell.
  ///
  /// Completes: when every rank has called it and rank 0 has said so
  /// Errors:    timed_out listing who has not arrived; mismatch, peer_lost, aborted
  /// Cost:      two messages for each rank but 0, all of them to or from rank 0
  /// Example:   examples/11_barrier.cpp
  template <call_option... Options>
  operation<> monitored_barrier(Options&&... options) const {
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::barrier;
      calls().require_open(kind);
      return collective::barrier<transport_type>(
          calls().enter(calls().sign(kind, collective::algorithm::linear, 0, 0), options_of(options...)));
    });
  }

  /// Combines the elements of all ranks and leaves each rank its own block of the result.
  ///
  /// Result:    out[i] = x0[r][i] op x1[r][i] op ..., where r = rank() and xk[r] is block r of in on rank k
  /// Shapes:    in: size() times the count of out, or a list of size() buffers; the same on every rank
  /// Needs:     reduction<Op, T>, associative
  /// Order:     rank order, unless is_commutative<Op, T>; the same bits from run to run
  /// Completes: when out holds the result and in may be reused
  /// Errors:    errc::invalid_argument (size of in), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; op is kept by the operation
  /// Cost:      ceil(log2 n) rounds, (n-1)/n vectors sent and received, for any n
  /// Source:    Traeff, Optimal Non-pipelined Reduce-scatter and Allreduce, 2024
  /// Example:   examples/09_reduce_scatter.cpp
  template <range_like In, range_like Out, class Op, call_option... Options>
    requires(!range_like<Op>)
  operation<> reduce_scatter(In&& in, Out&& out, Op op, Options&&... options)
  const {
    using T = buffer_element_t<std::remove_reference_t<Out>>;
    check_output<Out>();
    check_reduction<Op, T>();
    return guarded<void>([&]() -> operation<> {
      auto kind = operation_kind::reduce_scatter;
      const auto to = view(out);
      calls().require_open(kind);
      calls().check_null(kind, "out", to.data(), to.size());
      collective::block_table table;
      const cut c = cut_blocks<T, In>(kind, "in", in, table, "reduce_scatter_v");
      const auto own = static_cast<std::size_t>(calls().rank());
      if (c.even) {
        calls().check_count(kind, "out", to.size(), c.block, "the size of a block of in");
      } else {
        kind = operation_kind::reduce_scatter_v;
        calls().check_count(kind, "out", to.size(), c.where.bytes(calls().rank(), 1) / sizeof(T),
                            [&] { return "the size of in[" + std::to_string(own) + "]"; });
      }
      check_disjoint(kind, c, to.data(), to.size_bytes());
      return start_reduce_scatter<T>(kind, c, to.data(), to.size(), std::move(op), table, options_of(options...));
    });
  }
  /// The same with a count for each rank, known to all of them.
  ///
  /// Shapes: in: the sum of counts; out: counts[rank()] elements
  template <range_like In, range_like Out, count_list Counts, class Op, call_option... Options>
  operation<> reduce_scatter_v(In&& in, Out&& out, const Counts& counts, Op op, Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<Out>>;
    check_buffer<In>();
    check_output<Out>();
    check_same_element<T, buffer_element_t<std::remove_reference_t<In>>>();
    check_reduction<Op, T>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::reduce_scatter_v;
      const auto from = view(in);
      const auto to = view(out);
      calls().require_open(kind);
      calls().check_null(kind, "out", to.data(), to.size());
      const collective::detail::short_vector<std::uint64_t> all =
          read_counts(calls(), kind, "counts", counts, sizeof(T));
      calls().check_count(kind, "out", to.size(),
                          static_cast<std::size_t>(all[static_cast<std::size_t>(calls().rank())]), "counts[rank()]");
      collective::block_table table;
      const cut c = cut_by_counts(calls(), kind, "in", "counts", from.data(), from.size(), all, table.lists().offsets);
      check_disjoint(kind, c, to.data(), to.size_bytes());
      return start_reduce_scatter<T>(kind, c, to.data(), to.size(), std::move(op), table, options_of(options...));
    });
  }

  /// Gives block j of every rank to rank j.
  ///
  /// Result:    block r of out on rank j = block j of in on rank r
  /// Shapes:    in, out: size() blocks of one size, the same on every rank; or lists of size() buffers, of any sizes
  ///            on which sender and receiver agree
  /// Completes: when out is filled and in may be reused
  /// Errors:    errc::invalid_argument (sizes), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then and must not overlap
  /// Cost:      blocks up to 256 bytes and 8 ranks or more: ceil(log2 n) rounds; else n-1 messages, a few at a time
  /// Source:    Bruck et al., Efficient Algorithms for All-to-All Communications, 1997; pairwise exchange
  /// Example:   examples/10_all_to_all.cpp
  template <range_like In, range_like Out, call_option... Options>
    requires(
        !count_list<Out> ||
        std::same_as<buffer_element_t<std::remove_reference_t<In>>, buffer_element_t<std::remove_reference_t<Out>>>)
  operation<> all_to_all(In&& in, Out&& out, Options&&... options)
  const {
    return guarded<void>([&]() -> operation<> {
      // A rank whose own buffers happen to be of one size cannot know that all are: lists are always the form in _v.
      constexpr bool lists = buffer_list<std::remove_reference_t<In>>;
      static_assert(lists == buffer_list<std::remove_reference_t<Out>>,
                    "cohort: all_to_all takes two buffers or two lists of buffers");
      constexpr auto kind = lists ? operation_kind::all_to_all_v : operation_kind::all_to_all;
      calls().require_open(kind);
      collective::block_table table;
      collective::block_table other;
      using T = element_of<In>;
      check_same_element<T, element_of<Out>>();
      if constexpr (!lists) check_output<Out>();
      const cut from = cut_blocks<T, In>(kind, "in", in, table, "all_to_all_v");
      const cut to = cut_blocks<T, Out>(kind, "out", out, other, "all_to_all_v");
      if constexpr (!lists) calls().check_count(kind, "out", to.elements, from.elements, "the size of in");
      if constexpr (lists) {
        const int own = calls().rank();
        check_own_block(kind, from.where.bytes(own, 1) / sizeof(T), to.where.bytes(own, 1) / sizeof(T));
      }
      check_pairwise_disjoint(kind, from, to);
      if constexpr (lists) table.lists().other_runs = std::move(other.lists().runs);
      return start_all_to_all<T>(kind, lists ? 0 : from.block, from, to, table, options_of(options...));
    });
  }
  /// The same with a count for each rank on both sides.
  ///
  /// Shapes: in: the sum of send_counts; out: the sum of receive_counts; send_counts[j] here = receive_counts[here] on
  /// j
  template <range_like In, count_list SendCounts, range_like Out, count_list ReceiveCounts, call_option... Options>
  operation<> all_to_all_v(In&& in, const SendCounts& send_counts, Out&& out, const ReceiveCounts& receive_counts,
                           Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_buffer<In>();
    check_output<Out>();
    check_same_element<T, buffer_element_t<std::remove_reference_t<Out>>>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_to_all_v;
      const auto from = view(in);
      const auto to = view(out);
      calls().require_open(kind);
      collective::block_table table;
      const collective::detail::short_vector<std::uint64_t> sent =
          read_counts(calls(), kind, "send_counts", send_counts, sizeof(T));
      const collective::detail::short_vector<std::uint64_t> got =
          read_counts(calls(), kind, "receive_counts", receive_counts, sizeof(T));
      const cut a =
          cut_by_counts(calls(), kind, "in", "send_counts", from.data(), from.size(), sent, table.lists().offsets);
      const cut b =
          cut_by_counts(calls(), kind, "out", "receive_counts", to.data(), to.size(), got, table.lists().other_offsets);
      const auto own = static_cast<std::size_t>(calls().rank());
      check_own_block(kind, sent[own], got[own]);
      calls().check_overlap(kind, from.data(), to.data(), from.size_bytes(), to.size_bytes(), false);
      return start_all_to_all<T>(kind, 0, a, b, table, options_of(options...));
    });
  }
  /// The same where only the senders know their counts.
  ///
  /// Result: the blocks of all ranks for this one
  /// Cost:   n-1 short messages more
  template <range_like In, count_list SendCounts, call_option... Options>
  operation<ragged<buffer_element_t<std::remove_reference_t<In>>>> all_to_all_v(In&& in, const SendCounts& send_counts,
                                                                                Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_buffer<In>();
    static_assert(!std::is_same_v<T, bool>,
                  "cohort: the result would be a std::vector<bool>, which has no array of bool: use char");
    return guarded<ragged<T>>([&]() -> operation<ragged<T>> {
      constexpr auto kind = operation_kind::all_to_all_v;
      const auto from = view(in);
      calls().require_open(kind);
      collective::detail::short_vector<std::uint64_t> sent =
          read_counts(calls(), kind, "send_counts", send_counts, sizeof(T));
      collective::detail::short_vector<std::size_t> offsets;
      static_cast<void>(cut_by_counts(calls(), kind, "in", "send_counts", from.data(), from.size(), sent, offsets));
      ticket t = calls().enter(
          calls().sign(kind, calls().choose(kind, 0), element_type_id<T>, transport::signature::negotiated),
          options_of(options...));
      return collective::all_to_all_negotiated<transport_type, T>(std::move(t), from.data(), std::move(sent));
    });
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class B>
  struct elements {
    using type = buffer_element_t<std::remove_reference_t<B>>;
  };
  template <class B>
    requires buffer_list<std::remove_reference_t<B>>
  struct elements<B> {
    using type = list_element_t<std::remove_reference_t<B>>;
  };
  template <class B>
  using element_of = typename elements<B>::type;

  template <class T, class Buffer>
  [[nodiscard]] cut cut_blocks(operation_kind kind, const char* name_of, std::remove_reference_t<Buffer>& blocks,
                               collective::block_table& table, const char* uneven) const {
    if constexpr (buffer_list<std::remove_reference_t<Buffer>>) {
      static_assert(outlives_call<Buffer>,
                    "cohort: this list of buffers would be gone before the operation has used it: give it a name");
      check_same_element<T, list_element_t<std::remove_reference_t<Buffer>>>();
      return cut_list(calls(), kind, name_of, blocks, table.lists().runs);
    } else {
      check_buffer<Buffer>();
      check_same_element<T, buffer_element_t<std::remove_reference_t<Buffer>>>();
      const auto all = view(blocks);
      calls().check_null(kind, name_of, all.data(), all.size());
      return cut_evenly(all.data(), calls().divide(kind, name_of, all.size(), uneven), calls().size());
    }
  }
  // What a rank gives itself meets no other rank's count.
  void check_own_block(operation_kind kind, std::uint64_t sent, std::uint64_t expected) const {
    if (sent == expected) return;
    calls().refuse(
        kind, "this rank sends itself " + std::to_string(sent) + " elements and expects " + std::to_string(expected));
  }
  void check_disjoint(operation_kind kind, const cut& c, const void* out, std::size_t bytes) const {
    if (c.whole.data != nullptr) return calls().check_overlap(kind, c.whole.data, out, c.whole.bytes, bytes, false);
    c.where.each_piece(0, calls().size(), [&](const std::byte* data, std::size_t n) {
      calls().check_overlap(kind, data, out, n, bytes, false);
    });
  }
  void check_pairwise_disjoint(operation_kind kind, const cut& a, const cut& b) const {
    if (a.whole.data != nullptr) return check_disjoint(kind, b, a.whole.data, a.whole.bytes);
    a.where.each_piece(0, calls().size(),
                       [&](const std::byte* data, std::size_t n) { check_disjoint(kind, b, data, n); });
  }

  template <class T, class Op>
  operation<> start_reduce_scatter(operation_kind kind, const cut& c, T* out, std::size_t count, Op op,
                                   collective::block_table& table, call::options o) const {
    const auto how =
        calls().choose(kind, c.elements * sizeof(T), is_commutative<Op, T>, transport::never_throws<T, Op>);
    const transport::signature s = calls().sign(kind, how, element_type_id<T>, c.elements, functor_id<Op>);
    const auto own = collective::layout::uniform(collective::bytes_of(out), count * sizeof(T), 1);
    return collective::reduce_scatter<transport_type, T, Op>(calls().enter(s, std::move(o)), c.where, own,
                                                             c.largest * sizeof(T), std::move(op), table);
  }
  template <class T>
  operation<> start_all_to_all(operation_kind kind, std::size_t block, const cut& from, const cut& to,
                               collective::block_table& table, call::options o) const {
    const std::size_t bytes = std::max(from.largest, to.largest) * sizeof(T);
    // Ranks that know only their own blocks must choose alike: the size of a block counts only where all have one size.
    const auto how = calls().choose(kind, block * sizeof(T));
    ticket t = calls().enter(calls().sign(kind, how, element_type_id<T>, block), std::move(o));
    const bool even = kind == operation_kind::all_to_all;
    if (even) {
      collective::short_move all{from.whole.data, to.whole.data, bytes};
      all.in_by_rank = all.out_by_rank = true;
      if (collective::short_move_at_once<transport_type>(t, all)) return operation<>::completed({});
    }
    return collective::all_to_all<transport_type>(std::move(t), from.where, to.where, even ? bytes : 0, table);
  }
};

}  // namespace cohort::detail
