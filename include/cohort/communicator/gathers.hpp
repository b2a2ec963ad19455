// SPDX-License-Identifier: BSL-1.0
// The calls of a communicator that bring blocks together or give them out: gather, all_gather, scatter and their
// forms in _v. A base of communicator<Backend>; starts collective/gather.hpp, all_gather.hpp and scatter.hpp.
#pragma once

#include <cohort/collective/all_gather.hpp>
#include <cohort/collective/gather.hpp>
#include <cohort/collective/move_at_once.hpp>
#include <cohort/collective/negotiate.hpp>
#include <cohort/collective/scatter.hpp>
#include <cohort/communicator/blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort::detail {

template <class Communicator, backend Backend>
class gather_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// Gives every rank the blocks of all ranks, in the order of the ranks.
  ///
  /// Result:    block r of out = in of rank r
  /// Shapes:    in: the same count on every rank; out: size() times that, or a list of size() buffers of that count
  /// Completes: when out is filled and in may be reused
  /// Errors:    errc::invalid_argument (size of out), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then; in may be this rank's own block of out
  /// Cost:      ceil(log2 n) rounds, n-1 blocks sent and received, for any n
  /// Source:    Traeff, Optimal Non-pipelined Reduce-scatter and Allreduce, 2024
  /// Example:   examples/06_all_gather.cpp
  template <range_like In, range_like Out, call_option... Options>
  operation<> all_gather(In&& in, Out&& out, Options&&... options) const {
    using T = checked_element<In, Out>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_gather;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_null(kind, "in", from.data(), from.size());
      collective::block_table table;
      const cut c = cut_output<T>(kind, out, from.size(), table);
      check_own_block(kind, from, c, calls().rank());
      ticket t = enter<T>(kind, from.size(), c.elements * sizeof(T), -1, options_of(options...));
      collective::short_move all{collective::bytes_of(from.data()), c.whole.data, from.size_bytes()};
      all.out_by_rank = true;
      if (collective::short_move_at_once<transport_type>(t, all)) return operation<>::completed({});
      return collective::all_gather<transport_type>(std::move(t), one_block(from), c.where, table);
    });
  }
  /// One value in, the values of all ranks out.
  template <single_value T, call_option... Options>
  operation<std::vector<T>> all_gather(T value, Options&&... options) const {
    check_vector_element<T>();
    return guarded<std::vector<T>>([&]() -> operation<std::vector<T>> {
      constexpr auto kind = operation_kind::all_gather;
      calls().require_open(kind);
      return collective::all_gather_value<transport_type, T>(
          enter<T>(kind, 1, static_cast<std::size_t>(calls().size()) * sizeof(T), -1, options_of(options...)), value);
    });
  }
  /// The same with a count for each rank, known to all of them.
  ///
  /// Shapes: in: counts[rank()] elements; out: the sum of counts
  template <range_like In, range_like Out, count_list Counts, call_option... Options>
  operation<> all_gather_v(In&& in, Out&& out, const Counts& counts, Options&&... options) const {
    using T = checked_element<In, Out>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::all_gather_v;
      const auto from = view(in);
      const auto to = view(out);
      calls().require_open(kind);
      calls().check_null(kind, "in", from.data(), from.size());
      const collective::detail::short_vector<std::uint64_t> all =
          read_counts(calls(), kind, "counts", counts, sizeof(T));
      calls().check_count(kind, "in", from.size(),
                          static_cast<std::size_t>(all[static_cast<std::size_t>(calls().rank())]), "counts[rank()]");
      collective::block_table table;
      const cut c = cut_by_counts(calls(), kind, "out", "counts", to.data(), to.size(), all, table.lists().offsets);
      check_own_block(kind, from, c, calls().rank());
      return collective::all_gather<transport_type>(
          enter<T>(kind, c.elements, c.elements * sizeof(T), -1, options_of(options...)), one_block(from), c.where,
          table);
    });
  }
  /// The same where only the senders know their counts.
  ///
  /// Result: the blocks of all ranks
  /// Cost:   ceil(log2 n) short rounds more
  template <range_like In, call_option... Options>
  operation<ragged<buffer_element_t<std::remove_reference_t<In>>>> all_gather_v(In&& in, Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_buffer<In>();
    check_vector_element<T>();
    return guarded<ragged<T>>([&]() -> operation<ragged<T>> {
      constexpr auto kind = operation_kind::all_gather_v;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_null(kind, "in", from.data(), from.size());
      return collective::all_gather_negotiated<transport_type, T>(
          enter<T>(kind, transport::signature::negotiated, 0, -1, options_of(options...)), from.data(), from.size());
    });
  }

  /// Gives the root the blocks of all ranks, in the order of the ranks.
  ///
  /// Result:    block r of out on the root = in of rank r
  /// Shapes:    in: the same count on every rank; out: size() times that, or a list of size() buffers of that count,
  ///            on the root; ignored elsewhere
  /// Completes: on the root when out is filled, elsewhere when in may be reused
  /// Errors:    errc::invalid_argument (root, size of out), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then
  /// Cost:      blocks up to 8 KiB: ceil(log2 n) rounds; above: one message from each rank
  /// Example:   examples/07_gather.cpp
  template <range_like In, range_like Out, call_option... Options>
  operation<> gather(In&& in, Out&& out, root to_rank, Options&&... options) const {
    using T = checked_element<In, Out>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::gather;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      calls().check_null(kind, "in", from.data(), from.size());
      collective::block_table table;
      const bool here = calls().rank() == to_rank.rank;
      const cut c = here ? cut_output<T>(kind, out, from.size(), table) : cut{};
      if (here) check_own_block(kind, from, c, to_rank.rank);
      const std::size_t bytes = from.size_bytes();
      ticket t = enter<T>(kind, from.size(), bytes, to_rank.rank, options_of(options...));
      collective::short_move all{collective::bytes_of(from.data()), c.whole.data, bytes};
      all.out_by_rank = true;
      all.taker = to_rank.rank;
      if (collective::short_move_at_once<transport_type>(t, all)) return operation<>::completed({});
      return collective::gather<transport_type>(std::move(t), one_block(from), c.where, bytes, table);
    });
  }
  /// One value in; on the root the values of all ranks, elsewhere an empty vector.
  template <single_value T, call_option... Options>
  operation<std::vector<T>> gather(T value, root to_rank, Options&&... options) const {
    check_vector_element<T>();
    return guarded<std::vector<T>>([&]() -> operation<std::vector<T>> {
      constexpr auto kind = operation_kind::gather;
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      return collective::gather_value<transport_type, T>(
          enter<T>(kind, 1, sizeof(T), to_rank.rank, options_of(options...)), value);
    });
  }
  template <range_like In, range_like Out, std::integral Rank, class... Options>
  operation<> gather(In&&, Out&&, Rank, Options&&...) const {
    return refuse_plain_root<Rank>();
  }
  /// The same with a count for each rank; the root alone needs to know them.
  ///
  /// Shapes: in: counts[rank()] elements as the root has it; out: the sum of counts, on the root
  template <range_like In, range_like Out, count_list Counts, call_option... Options>
  operation<> gather_v(In&& in, Out&& out, const Counts& counts, root to_rank, Options&&... options) const {
    using T = checked_element<In, Out>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::gather_v;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      calls().check_null(kind, "in", from.data(), from.size());
      collective::block_table table;
      cut c;
      if (calls().rank() == to_rank.rank) {
        const auto to = view(out);
        const collective::detail::short_vector<std::uint64_t> all =
            read_counts(calls(), kind, "counts", counts, sizeof(T));
        calls().check_count(kind, "in", from.size(),
                            static_cast<std::size_t>(all[static_cast<std::size_t>(calls().rank())]), "counts[rank()]");
        c = cut_by_counts(calls(), kind, "out", "counts", to.data(), to.size(), all, table.lists().offsets);
        check_own_block(kind, from, c, to_rank.rank);
      }
      return collective::gather<transport_type>(enter<T>(kind, 0, 0, to_rank.rank, options_of(options...)),
                                                one_block(from), c.where, 0, table);
    });
  }
  /// The same where only the senders know their counts: on the root the blocks of all ranks, elsewhere none.
  template <range_like In, call_option... Options>
  operation<ragged<buffer_element_t<std::remove_reference_t<In>>>> gather_v(In&& in, root to_rank,
                                                                            Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_buffer<In>();
    check_vector_element<T>();
    return guarded<ragged<T>>([&]() -> operation<ragged<T>> {
      constexpr auto kind = operation_kind::gather_v;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_root(kind, to_rank);
      calls().check_null(kind, "in", from.data(), from.size());
      return collective::gather_negotiated<transport_type, T>(
          enter<T>(kind, transport::signature::negotiated, 0, to_rank.rank, options_of(options...)), from.data(),
          from.size());
    });
  }

  /// Gives each rank its block of the root's elements.
  ///
  /// Result:    out of rank r = block r of in on the root
  /// Shapes:    in: size() times the count of out, or a list of size() buffers of that count, on the root; ignored
  ///            elsewhere; out: the same count on every rank
  /// Completes: on the root when in may be reused, everywhere when out is filled
  /// Errors:    errc::invalid_argument (root, size of in), mismatch, peer_lost, aborted, timed_out
  /// Lifetime:  the buffers are borrowed until then
  /// Cost:      blocks up to 8 KiB: ceil(log2 n) rounds; above: one message to each rank
  /// Example:   examples/08_scatter.cpp
  template <range_like In, range_like Out, call_option... Options>
  operation<> scatter(In&& in, Out&& out, root from_rank, Options&&... options) const {
    using T = checked_element<Out, Out>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::scatter;
      const auto to = view(out);
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      calls().check_null(kind, "out", to.data(), to.size());
      const bool here = calls().rank() == from_rank.rank;
      const std::size_t bytes = to.size_bytes();
      const auto start = [&]() { return enter<T>(kind, to.size(), bytes, from_rank.rank, options_of(options...)); };
      check_input<T, In>();
      if constexpr (buffer_list<std::remove_reference_t<In>>) {
        collective::block_table table;
        const cut c = here ? cut_blocks<T>(kind, "in", in, to.size(), table, "out") : cut{};
        return collective::scatter<transport_type>(start(), c.where, one_block(to), bytes, table);
      } else {
        const auto from = view(in);
        if (here) check_blocks(kind, "in", from, to.size());
        ticket t = start();
        collective::short_move all{collective::bytes_of(from.data()), collective::bytes_of(to.data()), bytes};
        all.in_by_rank = true;
        all.giver = from_rank.rank;
        if (collective::short_move_at_once<transport_type>(t, all)) return operation<>::completed({});
        collective::block_table table;
        const cut c = here ? cut_evenly(from.data(), to.size(), calls().size()) : cut{};
        return collective::scatter<transport_type>(std::move(t), c.where, one_block(to), bytes, table);
      }
    });
  }
  template <range_like In, range_like Out, std::integral Rank, class... Options>
  operation<> scatter(In&&, Out&&, Rank, Options&&...) const {
    return refuse_plain_root<Rank>();
  }
  /// A value for each rank on the root; each rank gets its own.
  ///
  /// Shapes: in: size() elements on the root, ignored elsewhere
  template <range_like In, call_option... Options>
  operation<buffer_element_t<std::remove_reference_t<In>>> scatter(In&& in, root from_rank,
                                                                   Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_buffer<In>();
    return guarded<T>([&]() -> operation<T> {
      constexpr auto kind = operation_kind::scatter;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      if (calls().rank() == from_rank.rank) {
        calls().check_count(kind, "in", from.size(), static_cast<std::size_t>(calls().size()), "one for each rank");
        calls().check_null(kind, "in", from.data(), from.size());
      }
      return collective::scatter_value<transport_type, T>(
          enter<T>(kind, 1, sizeof(T), from_rank.rank, options_of(options...)), from.data());
    });
  }
  /// The same with a count for each rank; the root alone needs to know those of the others.
  ///
  /// Shapes: in: the sum of counts, on the root; out: counts[rank()] elements as the root has it
  template <range_like In, count_list Counts, range_like Out, call_option... Options>
  operation<> scatter_v(In&& in, const Counts& counts, Out&& out, root from_rank, Options&&... options) const {
    using T = checked_element<In, Out>;
    return guarded<void>([&]() -> operation<> {
      constexpr auto kind = operation_kind::scatter_v;
      const auto from = view(in);
      const auto to = view(out);
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      calls().check_null(kind, "out", to.data(), to.size());
      collective::block_table table;
      cut c;
      if (calls().rank() == from_rank.rank) {
        const collective::detail::short_vector<std::uint64_t> all =
            read_counts(calls(), kind, "counts", counts, sizeof(T));
        calls().check_count(kind, "out", to.size(),
                            static_cast<std::size_t>(all[static_cast<std::size_t>(calls().rank())]), "counts[rank()]");
        c = cut_by_counts(calls(), kind, "in", "counts", from.data(), from.size(), all, table.lists().offsets);
      }
      return collective::scatter<transport_type>(enter<T>(kind, 0, 0, from_rank.rank, options_of(options...)), c.where,
                                                 one_block(to), 0, table);
    });
  }
  /// The same where only the root knows the counts: each rank gets its block in a vector.
  template <range_like In, count_list Counts, call_option... Options>
  operation<std::vector<buffer_element_t<std::remove_reference_t<In>>>> scatter_v(In&& in, const Counts& counts,
                                                                                  root from_rank,
                                                                                  Options&&... options) const {
    using T = buffer_element_t<std::remove_reference_t<In>>;
    check_buffer<In>();
    check_vector_element<T>();
    return guarded<std::vector<T>>([&]() -> operation<std::vector<T>> {
      constexpr auto kind = operation_kind::scatter_v;
      const auto from = view(in);
      calls().require_open(kind);
      calls().check_root(kind, from_rank);
      collective::detail::short_vector<std::uint64_t> all;
      if (calls().rank() == from_rank.rank) {
        all = read_counts(calls(), kind, "counts", counts, sizeof(T));
        collective::detail::short_vector<std::size_t> offsets;
        static_cast<void>(cut_by_counts(calls(), kind, "in", "counts", from.data(), from.size(), all, offsets));
      }
      return collective::scatter_negotiated<transport_type, T>(
          enter<T>(kind, transport::signature::negotiated, 0, from_rank.rank, options_of(options...)), from.data(),
          std::move(all));
    });
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class Rank>
  static operation<> refuse_plain_root() {
    static_assert(always_false<Rank>,
                  "cohort: a root is a type, so that it cannot be taken for a count: write root{0}");
    return operation<>::completed({});
  }
  template <class T>
  static constexpr void check_vector_element() noexcept {
    check_element<T>();
    static_assert(!std::is_same_v<T, bool>,
                  "cohort: the result would be a std::vector<bool>, which has no array of bool: use char");
  }
  template <class T>
  [[nodiscard]] ticket enter(operation_kind kind, std::size_t count, std::size_t bytes, int root_rank,
                             call::options o) const {
    const std::uint16_t root = root_rank >= 0 ? static_cast<std::uint16_t>(root_rank) : transport::signature::no_root;
    return calls().enter(calls().sign(kind, calls().choose(kind, bytes), element_type_id<T>, count, 0, root),
                         std::move(o));
  }

  template <class In, class Out>
  struct element_of {
    using type = buffer_element_t<std::remove_reference_t<In>>;
  };
  template <class In, class Out>
  static consteval auto check_elements() noexcept {
    check_buffer<In>();
    using T = buffer_element_t<std::remove_reference_t<In>>;
    if constexpr (buffer_list<std::remove_reference_t<Out>>) {
      static_assert(outlives_call<Out>,
                    "cohort: this list of buffers would be gone before the operation has used it: give it a name");
      check_same_element<T, list_element_t<std::remove_reference_t<Out>>>();
    } else {
      check_output<Out>();
      check_same_element<T, buffer_element_t<std::remove_reference_t<Out>>>();
    }
    return element_of<In, Out>{};
  }
  template <class In, class Out>
  using checked_element = typename decltype(check_elements<In, Out>())::type;

  template <class T, class Out>
  [[nodiscard]] cut cut_output(operation_kind kind, Out& out, std::size_t block, collective::block_table& table) const {
    return cut_blocks<T>(kind, "out", out, block, table, "in");
  }
  template <class T, class In>
  static constexpr void check_input() noexcept {
    if constexpr (buffer_list<std::remove_reference_t<In>>) {
      static_assert(outlives_call<In>,
                    "cohort: this list of buffers would be gone before the operation has used it: give it a name");
      check_same_element<T, list_element_t<std::remove_reference_t<In>>>();
    } else {
      check_buffer<In>();
      check_same_element<T, buffer_element_t<std::remove_reference_t<In>>>();
    }
  }
  template <class T, class Blocks>
  [[nodiscard]] cut cut_blocks(operation_kind kind, const char* buffer, Blocks& blocks, std::size_t block,
                               collective::block_table& table, const char* other) const {
    if constexpr (buffer_list<Blocks>) {
      const cut c = cut_list(calls(), kind, buffer, blocks, table.lists().runs);
      if (!c.even || c.block != block) {
        calls().refuse(kind, std::string{"the buffers of "} + buffer + " do not all have the " + std::to_string(block) +
                                 " elements of " + other + ": use the form in _v for blocks of different sizes");
      }
      return c;
    } else {
      const auto all = view(blocks);
      check_blocks(kind, buffer, all, block);
      return cut_evenly(all.data(), block, calls().size());
    }
  }
  /// So many elements for each rank, one after the other.
  template <class Span>
  void check_blocks(operation_kind kind, const char* buffer, const Span& all, std::size_t block) const {
    const auto n = static_cast<std::size_t>(calls().size());
    calls().check_count(kind, buffer, all.size(), block * n,
                        [&] { return std::to_string(block) + " x " + std::to_string(n) + " ranks"; });
    calls().check_null(kind, buffer, all.data(), all.size());
  }
  // The input may be this rank's own block of the output, and no other part of it.
  template <class Span>
  void check_own_block(operation_kind kind, const Span& in, const cut& out, int own) const {
    // As it mostly is, in a few comparisons: elsewhere, or in its place.
    if (const std::byte* const all = out.where.row_of(in.size_bytes()); all != nullptr && !in.empty()) {
      const auto given = reinterpret_cast<std::uintptr_t>(in.data());
      const auto first = reinterpret_cast<std::uintptr_t>(all);
      const std::size_t bytes = in.size_bytes();
      if (given + bytes <= first || first + bytes * static_cast<std::size_t>(calls().size()) <= given) return;
      if (given == first + bytes * static_cast<std::size_t>(own)) return;
    }
    int at = 0;
    for (int block = 0; block < calls().size(); ++block) {
      at = block;
      out.where.each_piece(block, 1, [&](const std::byte* data, std::size_t bytes) {
        calls().check_overlap(kind, in.data(), data, in.size_bytes(), bytes, at == own);
      });
    }
  }
};

}  // namespace cohort::detail
