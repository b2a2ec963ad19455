// SPDX-License-Identifier: BSL-1.0
// The calls of communicator<nccl> that move whole blocks: broadcast, scatter, gather, all_gather, all_to_all, their forms
// in _v, and barrier. A base of the communicator. NCCL's own collectives where it has them, messages in one group where
// not; bytes in either case, so any element type will do.
#pragma once

#include <cohort/nccl/blocks.hpp>
#include <cohort/nccl/front.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace cohort::detail {

template <class Communicator>
class nccl_move_calls {
 public:
  /// Gives every rank the root's elements.
  ///
  /// Shapes:    inout: the same count on every rank
  /// Completes: on the stream
  /// Errors:    invalid_argument (root, memory), the communicator's first cause, io_error
  template <class Buffer, class... Options>
  stream_ordered broadcast(Buffer&& inout, root from_rank, Options&&... options) const {
    check_device_output<Buffer>();
    constexpr const char* name = "broadcast";
    const auto enqueue = [&](nccl_party& p, cudaStream_t s) {
      const auto all = view_on_device(inout);
      calls().check_root(name, from_rank);
      calls().check_memory(name, "inout", all);
      if (p.size() == 1 || all.empty()) return;
      p.check(ncclBroadcast(all.data(), all.data(), all.size_bytes(), nccl_bytes::type, from_rank.rank, p.comm(), s),
              "ncclBroadcast", name);
    };
    return calls().start_by_nccl(name, device_options_of(options...), enqueue, calls().size() > 1);
  }
  template <class Buffer, std::integral Rank, class... Options>
  stream_ordered broadcast(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a root is a type, so that it cannot be taken for a count: write root{0}");
    return refused_operation();
  }

  /// Gives every rank the blocks of all ranks, in the order of the ranks.
  ///
  /// Shapes:    in: the same count on every rank, and perhaps this rank's own block of out; out: size() times that
  /// Completes: on the stream
  /// Errors:    invalid_argument (size of out, memory), the communicator's first cause, io_error
  template <class In, class Out, class... Options>
  stream_ordered all_gather(In&& in, Out&& out, Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "all_gather";
    const auto enqueue = [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      const auto n = static_cast<std::size_t>(p.size());
      calls().check_count(name, "out", to.size(), from.size() * n, "the size of in times the ranks");
      check_both(name, from, to);
      const std::size_t own = static_cast<std::size_t>(p.rank()) * from.size();
      if (from.data() != to.data() + own) calls().check_overlap(name, from, to, false);
      if (p.size() == 1) return move_own(p, name, from.data(), to.data(), from.size_bytes(), s);
      if (from.empty()) return;
      p.check(ncclAllGather(from.data(), to.data(), from.size_bytes(), nccl_bytes::type, p.comm(), s), "ncclAllGather",
              name);
    };
    return calls().start_by_nccl(name, device_options_of(options...), enqueue, calls().size() > 1);
  }
  /// The same into a list of buffers, one for each rank.
  ///
  /// Shapes: out: size() buffers of the count of in
  /// Cost:   a message from and to each rank, in one launch
  template <class In, device_list Out, class... Options>
  stream_ordered all_gather(In&& in, Out&& out, Options&&... options) const {
    using T = checked_list_element<In, Out>;
    constexpr const char* name = "all_gather";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      calls().check_memory(name, "in", from);
      const auto to = even_list<T>(name, "out", out, from.size(), "the size of in");
      exchange_blocks<T>(p, name, device_blocks<const T>(to.size(), from), to, s);
    });
  }
  /// The same with a count for each rank, known to all of them.
  ///
  /// Shapes: in: counts[rank()] elements; out: the sum of counts
  template <class In, class Out, device_counts Counts, class... Options>
  stream_ordered all_gather_v(In&& in, Out&& out, const Counts& counts, Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "all_gather_v";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      const auto blocks = blocks_by_counts<T>(calls(), name, "out", "counts", to, counts);
      check_own(name, "in", from.size(), blocks[static_cast<std::size_t>(p.rank())].size());
      check_both(name, from, to);
      exchange_blocks<T>(p, name, device_blocks<const T>(static_cast<std::size_t>(p.size()), from), blocks, s);
    });
  }

  /// Gives the root the blocks of all ranks, in the order of the ranks.
  ///
  /// Shapes:    in: the same count on every rank; out: size() times that on the root, ignored elsewhere
  /// Completes: on the stream
  /// Errors:    as all_gather; invalid_argument (root)
  template <class In, class Out, class... Options>
  stream_ordered gather(In&& in, Out&& out, root to_rank, Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "gather";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      calls().check_root(name, to_rank);
      calls().check_memory(name, "in", from);
      if (p.rank() == to_rank.rank) {
        calls().check_count(name, "out", to.size(), from.size() * static_cast<std::size_t>(p.size()),
                            "the size of in times the ranks");
        calls().check_memory(name, "out", to);
      }
      if (p.size() == 1) return move_own(p, name, from.data(), to.data(), from.size_bytes(), s);
      if (from.empty()) return;
      p.check(ncclGather(from.data(), to.data(), from.size_bytes(), nccl_bytes::type, to_rank.rank, p.comm(), s),
              "ncclGather", name);
    });
  }
  /// The same into a list of buffers, one for each rank.
  ///
  /// Shapes: out: size() buffers of the count of in on the root, ignored elsewhere
  template <class In, device_list Out, class... Options>
  stream_ordered gather(In&& in, Out&& out, root to_rank, Options&&... options) const {
    using T = checked_list_element<In, Out>;
    constexpr const char* name = "gather";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      calls().check_root(name, to_rank);
      calls().check_memory(name, "in", from);
      device_blocks<T> to;
      if (p.rank() == to_rank.rank) to = even_list<T>(name, "out", out, from.size(), "the size of in");
      gather_blocks<T>(p, name, from, to, to_rank.rank, s);
    });
  }
  /// The same with a count for each rank, known to the root.
  template <class In, class Out, device_counts Counts, class... Options>
  stream_ordered gather_v(In&& in, Out&& out, const Counts& counts, root to_rank, Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "gather_v";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      calls().check_root(name, to_rank);
      calls().check_memory(name, "in", from);
      device_blocks<T> blocks;
      if (p.rank() == to_rank.rank) {
        const device_span<T> to = view_on_device(out);
        calls().check_memory(name, "out", to);
        blocks = blocks_by_counts<T>(calls(), name, "out", "counts", to, counts);
        check_own(name, "in", from.size(), blocks[static_cast<std::size_t>(p.rank())].size());
      }
      gather_blocks<T>(p, name, from, blocks, to_rank.rank, s);
    });
  }

  /// Gives rank r block r of the root's elements.
  ///
  /// Shapes:    in: size() times the count of out on the root, ignored elsewhere; out: the same count on every rank
  /// Completes: on the stream
  /// Errors:    as gather
  template <class In, class Out, class... Options>
  stream_ordered scatter(In&& in, Out&& out, root from_rank, Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "scatter";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      calls().check_root(name, from_rank);
      calls().check_memory(name, "out", to);
      if (p.rank() == from_rank.rank) {
        calls().check_count(name, "in", from.size(), to.size() * static_cast<std::size_t>(p.size()),
                            "the size of out times the ranks");
        calls().check_memory(name, "in", from);
      }
      if (p.size() == 1) return move_own(p, name, from.data(), to.data(), to.size_bytes(), s);
      if (to.empty()) return;
      p.check(ncclScatter(from.data(), to.data(), to.size_bytes(), nccl_bytes::type, from_rank.rank, p.comm(), s),
              "ncclScatter", name);
    });
  }
  /// The same from a list of buffers, one for each rank.
  ///
  /// Shapes: in: size() buffers of the count of out on the root, ignored elsewhere
  template <device_list In, class Out, class... Options>
  stream_ordered scatter(In&& in, Out&& out, root from_rank, Options&&... options) const {
    check_device_output<Out>();
    using T = checked_list_element<Out, In>;
    constexpr const char* name = "scatter";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<T> to = view_on_device(out);
      calls().check_root(name, from_rank);
      calls().check_memory(name, "out", to);
      device_blocks<const T> from;
      if (p.rank() == from_rank.rank) from = even_list<const T>(name, "in", in, to.size(), "the size of out");
      scatter_blocks<T>(p, name, from, to, from_rank.rank, s);
    });
  }
  /// The same with a count for each rank, known to the root.
  template <class In, device_counts Counts, class Out, class... Options>
  stream_ordered scatter_v(In&& in, const Counts& counts, Out&& out, root from_rank, Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "scatter_v";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<T> to = view_on_device(out);
      calls().check_root(name, from_rank);
      calls().check_memory(name, "out", to);
      device_blocks<const T> blocks;
      if (p.rank() == from_rank.rank) {
        const device_span<const T> from = view_on_device(in);
        calls().check_memory(name, "in", from);
        blocks = blocks_by_counts<const T>(calls(), name, "in", "counts", from, counts);
        check_own(name, "out", to.size(), blocks[static_cast<std::size_t>(p.rank())].size());
      }
      scatter_blocks<T>(p, name, blocks, to, from_rank.rank, s);
    });
  }

  /// Gives block j of every rank to rank j.
  ///
  /// Shapes:    in, out: size() blocks of one size, the same on every rank; or lists of size() buffers, of any sizes on
  ///            which sender and receiver agree
  /// Completes: on the stream
  /// Errors:    as all_gather
  /// Lifetime:  in and out must not overlap
  template <class In, class Out, class... Options>
    requires(!device_list<In>)
  stream_ordered all_to_all(In&& in, Out&& out, Options&&... options)
  const {
    using T = checked<In, Out>;
    constexpr const char* name = "all_to_all";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      calls().check_count(name, "out", to.size(), from.size(), "the size of in");
      const std::size_t block = calls().divide(name, "in", from.size(), "all_to_all_v");
      check_both(name, from, to);
      calls().check_overlap(name, from, to, false);
      if (p.size() == 1) return move_own(p, name, from.data(), to.data(), from.size_bytes(), s);
      if (from.empty()) return;
      p.check(ncclAlltoAll(from.data(), to.data(), block * sizeof(T), nccl_bytes::type, p.comm(), s), "ncclAlltoAll",
              name);
    });
  }
  template <device_list In, device_list Out, class... Options>
  stream_ordered all_to_all(In&& in, Out&& out, Options&&... options) const {
    using T = device_element_t<std::ranges::range_reference_t<std::remove_reference_t<Out>>>;
    constexpr const char* name = "all_to_all";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const auto from = blocks_of_list<const T>(calls(), name, "in", in);
      const auto to = blocks_of_list<T>(calls(), name, "out", out);
      const auto own = static_cast<std::size_t>(p.rank());
      check_own(name, "in", from[own].size(), to[own].size());
      exchange_blocks<T>(p, name, from, to, s);
    });
  }
  /// The same with a count for each rank on both sides.
  ///
  /// Shapes: send_counts[j] here = receive_counts[here] on j
  template <class In, device_counts SendCounts, class Out, device_counts ReceiveCounts, class... Options>
  stream_ordered all_to_all_v(In&& in, const SendCounts& send_counts, Out&& out, const ReceiveCounts& receive_counts,
                              Options&&... options) const {
    using T = checked<In, Out>;
    constexpr const char* name = "all_to_all_v";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const device_span<const T> from = view_on_device(in);
      const device_span<T> to = view_on_device(out);
      const auto sent = blocks_by_counts<const T>(calls(), name, "in", "send_counts", from, send_counts);
      const auto got = blocks_by_counts<T>(calls(), name, "out", "receive_counts", to, receive_counts);
      const auto own = static_cast<std::size_t>(p.rank());
      check_own(name, "send_counts[rank()]", sent[own].size(), got[own].size());
      check_both(name, from, to);
      calls().check_overlap(name, from, to, false);
      exchange_blocks<T>(p, name, sent, got, s);
    });
  }

  // What other backends have: forms that return values, and forms in which only the senders know the counts.
  template <class Value>
  stream_ordered all_gather(Value&&) const {
    return returned<Value>();
  }
  template <class Value>
  stream_ordered gather(Value&&, root) const {
    return returned<Value>();
  }
  template <class Values>
  stream_ordered scatter(Values&&, root) const {
    return returned<Values>();
  }
  template <class In>
  stream_ordered all_gather_v(In&&) const {
    return uncounted<In>();
  }
  template <class In>
  stream_ordered gather_v(In&&, root) const {
    return uncounted<In>();
  }
  template <class In, class Counts>
  stream_ordered scatter_v(In&&, const Counts&, root) const {
    return uncounted<In>();
  }
  template <class In, class Counts>
  stream_ordered all_to_all_v(In&&, const Counts&) const {
    return uncounted<In>();
  }

  /// What comes on this rank's stream after it waits until every rank's stream has come to it.
  ///
  /// Completes: on the stream; the host does not wait: on_host(world.barrier())
  /// Cost:      an all_reduce of one integer
  template <class... Options>
  stream_ordered barrier(Options&&... options) const {
    constexpr const char* name = "barrier";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      if (p.size() == 1) return;
      std::byte* const word = p.scratch(s, sizeof(int), name);
      p.check(ncclAllReduce(word, word, 1, ncclInt32, ncclSum, p.comm(), s), "ncclAllReduce", name);
    });
  }

 private:
  [[nodiscard]] const nccl_front& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class In, class Out>
  using checked = checked_device_element<In, Out>;

  template <class Value>
  [[nodiscard]] stream_ordered returned() const {
    static_cast<void>(refuse_returned_values<Value>());
    return refused_operation();
  }
  template <class In>
  [[nodiscard]] stream_ordered uncounted() const {
    static_cast<void>(refuse_unknown_counts<In>());
    return refused_operation();
  }

  /// A list of buffers of one size.
  template <class T, class List>
  [[nodiscard]] device_blocks<T> even_list(const char* operation, const char* name, List& list, std::size_t expected,
                                           const char* why) const {
    device_blocks<T> blocks = blocks_of_list<T>(calls(), operation, name, list);
    for (const device_span<T>& each : blocks) calls().check_count(operation, name, each.size(), expected, why);
    return blocks;
  }
  template <class T>
  void check_both(const char* operation, device_span<const T> in, device_span<T> out) const {
    calls().check_memory(operation, "in", in);
    calls().check_memory(operation, "out", out);
  }
  void check_own(const char* operation, const char* buffer, std::size_t found, std::size_t expected) const {
    calls().check_count(operation, buffer, found, expected, "counts[rank()]");
  }
};

}  // namespace cohort::detail
