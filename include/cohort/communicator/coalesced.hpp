// SPDX-License-Identifier: BSL-1.0
// The calls of a communicator on several buffers at once: one operation, one set of messages, and no copy into a common
// buffer. A base of communicator<Backend>; checks the arguments and starts the bodies in collective/.
#pragma once

#include <cohort/collective/all_gather.hpp>
#include <cohort/collective/coalesced.hpp>
#include <cohort/collective/reduce_scatter.hpp>
#include <cohort/communicator/front.hpp>

#include <iterator>
#include <string>
#include <utility>

namespace cohort::detail {

template <class Communicator, backend Backend>
class coalesced_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// An all_reduce of every buffer of a list, in place.
  ///
  /// Result:    what all_reduce of one buffer with the elements of all would give
  /// Shapes:    inout: a list of buffers; their elements together are as many on every rank
  /// Needs:     reduction<Op, T>, associative
  /// Order:     as all_reduce
  /// Completes: when every buffer holds its result
  /// Errors:    errc::mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; the list is not needed after the call
  /// Cost:      that of one all_reduce of all elements
  /// Example:   tests/unit/coalesced.cpp
  template <buffer_list List, class Op, call_option... Options>
  operation<> all_reduce_coalesced(List&& inout, Op op, Options&&... options) const {
    using T = checked_list<List, true>;
    check_reduction<Op, T>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_reduce;
      calls().require_open(kind);
      collective::joined_vector all(sizeof(T));
      each_span(kind, "inout", inout,
                [&](auto span) { all.add(collective::bytes_of(span.data()), span.size_bytes()); });
      const transport::signature s =
          calls().sign(kind, calls().choose(kind, all.count() * sizeof(T), is_commutative<Op, T>, false),
                       element_type_id<T>, all.count(), functor_id<Op>);
      ticket t = calls().enter(s, options_of(options...));
      return collective::all_reduce_coalesced<transport_type, T, Op>(std::move(t), std::move(all), std::move(op));
    });
  }

  /// An all_gather of every buffer of a list.
  ///
  /// Result:    block r of out[k] = in[k] of rank r
  /// Shapes:    in, out: lists of as many buffers; out[k] has size() times the elements of in[k], the same on every
  ///            rank
  /// Completes: when every out is filled
  /// Errors:    errc::invalid_argument (sizes), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; the lists are not needed after the call
  /// Cost:      that of one all_gather of all elements
  /// Example:   tests/unit/coalesced.cpp
  template <buffer_list In, buffer_list Out, call_option... Options>
  operation<> all_gather_coalesced(In&& in, Out&& out, Options&&... options) const {
    using T = checked_list<In, false>;
    check_same_element<T, checked_list<Out, true>>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_gather;
      calls().require_open(kind);
      collective::block_table table;
      std::size_t elements = 0;
      pair_up(kind, in, "in", out, "out", table, elements);
      ticket t = calls().enter(calls().sign(kind, calls().choose(kind, elements * size() * sizeof(T), true, false),
                                            element_type_id<T>, elements * size()),
                               options_of(options...));
      return collective::all_gather<transport_type>(std::move(t), short_blocks(table), long_blocks(table), table);
    });
  }

  /// A reduce_scatter of every buffer of a list.
  ///
  /// Result:    out[k] on rank r = block r of in[k], combined over all ranks
  /// Shapes:    in, out: lists of as many buffers; in[k] has size() times the elements of out[k], the same on every
  ///            rank
  /// Needs:     reduction<Op, T>, associative
  /// Order:     as reduce_scatter
  /// Completes: when every out holds its result
  /// Errors:    errc::invalid_argument (sizes), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; the lists are not needed after the call
  /// Cost:      that of one reduce_scatter of all elements
  /// Example:   tests/unit/coalesced.cpp
  template <buffer_list In, buffer_list Out, class Op, call_option... Options>
  operation<> reduce_scatter_coalesced(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = checked_list<In, false>;
    check_same_element<T, checked_list<Out, true>>();
    check_reduction<Op, T>();
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::reduce_scatter;
      calls().require_open(kind);
      collective::block_table table;
      std::size_t elements = 0;
      pair_up(kind, out, "out", in, "in", table, elements);
      const transport::signature s =
          calls().sign(kind, calls().choose(kind, elements * size() * sizeof(T), is_commutative<Op, T>, false),
                       element_type_id<T>, elements * size(), functor_id<Op>);
      ticket t = calls().enter(s, options_of(options...));
      return collective::reduce_scatter<transport_type, T, Op>(std::move(t), long_blocks(table), short_blocks(table),
                                                               elements * sizeof(T), std::move(op), table);
    });
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(calls().size()); }

  template <class List, bool Written>
  struct list_check {
    using reference = std::ranges::range_reference_t<std::remove_reference_t<List>>;
    using buffer = std::remove_reference_t<reference>;
    static_assert(std::is_lvalue_reference_v<List> || std::ranges::borrowed_range<buffer>,
                  "cohort: these buffers would be gone before the operation has used them: give the list a name");
    static_assert(check_buffer<buffer&>());
    static_assert(!Written || !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<buffer>>>,
                  "cohort: the results are written here, so the elements must not be const");
    using type = buffer_element_t<buffer>;
  };
  template <class List, bool Written>
  using checked_list = typename list_check<List, Written>::type;

  template <class List, class F>
  void each_span(operation_kind kind, const char* name_of, List& list, F f) const {
    for (auto&& each : list) {
      const auto elements = view(each);
      calls().check_null(kind, name_of, elements.data(), elements.size());
      f(elements);
    }
  }

  [[nodiscard]] static collective::layout short_blocks(collective::block_table& table) {
    const collective::block_lists& all = table.lists();
    return collective::layout::table(all.runs.data(), all.offsets.data(), 1);
  }
  [[nodiscard]] collective::layout long_blocks(collective::block_table& table) const {
    const collective::block_lists& all = table.lists();
    return collective::layout::table(all.other_runs.data(), all.other_offsets.data(), calls().size());
  }
  /// One block of the short list in `runs`, size() blocks of the long one in `other_runs`.
  template <class Short, class Long>
  void pair_up(operation_kind kind, Short& one, const char* one_name, Long& many, const char* many_name,
               collective::block_table& table, std::size_t& elements) const {
    const std::size_t count = std::ranges::size(one);
    if (std::ranges::size(many) != count) {
      calls().refuse(kind, std::string{one_name} + " is a list of " + std::to_string(count) + " buffers, " + many_name +
                               " of " + std::to_string(std::ranges::size(many)) + ": expected as many");
    }
    std::size_t index = 0;
    collective::detail::short_vector<transport::piece> whole;
    each_span(kind, many_name, many, [&](auto span) {
      whole.push_back({collective::bytes_of(span.data()), span.size_bytes()});
    });
    collective::block_lists& lists = table.lists();
    lists.offsets.assign({0, count});
    each_span(kind, one_name, one, [&](auto span) {
      lists.runs.push_back({collective::bytes_of(span.data()), span.size_bytes()});
      elements += span.size();
      const std::size_t found = whole[index].bytes / sizeof(*span.data());
      calls().check_count(kind, many_name, found, span.size() * size(), [&] {
        return std::to_string(size()) + " ranks times the " + std::to_string(span.size()) + " elements of " + one_name +
               "[" + std::to_string(index) + "]";
      });
      ++index;
    });
    lists.other_offsets.assign(1, 0);
    for (std::size_t r = 0; r < size(); ++r) {
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t bytes = lists.runs[k].bytes;
        lists.other_runs.push_back({whole[k].data + r * bytes, bytes});
      }
      lists.other_offsets.push_back(lists.other_runs.size());
    }
  }
};

}  // namespace cohort::detail
