// SPDX-License-Identifier: BSL-1.0
// The point-to-point calls of communicator<nccl>: send, recv, exchange, batch. A base of the communicator; what is sent is
// bytes, so any element type will do.
#pragma once

#include <cohort/element.hpp>
#include <cohort/nccl/batch.hpp>
#include <cohort/nccl/blocks.hpp>
#include <cohort/nccl/front.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort::detail {

template <class Communicator>
class nccl_message_calls {
 public:
  /// Sends a buffer to a rank.
  ///
  /// Needs:     a recv of as many bytes there. Two ranks that send to each other do it in one group() or by exchange:
  ///            a send of NCCL's may wait for its receive
  /// Order:     messages between two ranks match in the order of the calls; where tags are to decide, batch()
  /// Completes: on the stream, when the buffer may be reused
  /// Errors:    invalid_argument (destination, memory, itself outside of a group), closed, io_error
  template <class Buffer, class... Options>
  stream_ordered send(Buffer&& buffer, to destination, Options&&... options) const {
    check_device_buffer<Buffer>();
    constexpr const char* name = "send";
    return calls().start_by_nccl(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const auto what = view_on_device(buffer);
      check_partner(p, name, "destination", destination.rank);
      calls().check_memory(name, "buffer", what);
      send_bytes(p, name, what.data(), what.size_bytes(), destination.rank, s);
    });
  }
  template <class Buffer, std::integral Rank, class... Options>
  stream_ordered send(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a destination is a type, so that it cannot be taken for a count: write to{1}");
    return refused_operation();
  }

  template <class Buffer, message_label Label, class... Options>
  stream_ordered send(Buffer&&, to, Label, Options&&...) const {
    return tagged<Label>();
  }

  /// Receives what a rank has sent.
  ///
  /// Shapes:    as many elements as were sent: NCCL tells nobody how many came
  /// Order:     as send
  /// Completes: on the stream, when the buffer is filled
  /// Errors:    as send
  template <class Buffer, class... Options>
  stream_ordered recv(Buffer&& buffer, from source, Options&&... options) const {
    check_device_output<Buffer>();
    constexpr const char* name = "recv";
    return calls().start_by_nccl(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const auto what = view_on_device(buffer);
      check_partner(p, name, "source", source.rank);
      calls().check_memory(name, "buffer", what);
      receive_bytes(p, name, what.data(), what.size_bytes(), source.rank, s);
    });
  }
  template <class Buffer, std::integral Rank, class... Options>
  stream_ordered recv(Buffer&&, Rank, Options&&...) const {
    static_assert(always_false<Rank>,
                  "cohort: a source is a type, so that it cannot be taken for a count: write from{0}");
    return refused_operation();
  }
  template <class Buffer, std::same_as<from_any_t> Source, class... Options>
  stream_ordered recv(Buffer&&, Source, Options&&...) const {
    static_cast<void>(check_device_source<Source>());
    return refused_operation();
  }
  template <class Buffer, message_label Label, class... Options>
  stream_ordered recv(Buffer&&, from, Label, Options&&...) const {
    return tagged<Label>();
  }

  /// Sends to one rank and receives from one, at once; also to itself.
  ///
  /// Shapes:    as many elements as the partner sends
  /// Completes: on the stream, when `incoming` is filled and `outgoing` may be reused
  /// Errors:    as send; invalid_argument where the buffers overlap
  template <class Out, class In, class... Options>
  stream_ordered exchange(Out&& outgoing, to destination, In&& incoming, from source, Options&&... options) const {
    check_device_buffer<Out>();
    check_device_output<In>();
    constexpr const char* name = "exchange";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
      const auto out = view_on_device(outgoing);
      const auto in = view_on_device(incoming);
      calls().check_peer(name, "destination", destination.rank);
      calls().check_peer(name, "source", source.rank);
      calls().check_memory(name, "outgoing", out);
      calls().check_memory(name, "incoming", in);
      calls().check_overlap(name, out, in, false);
      if (destination.rank == p.rank() && source.rank == p.rank()) {
        calls().check_count(name, "incoming", in.size_bytes(), out.size_bytes(), "the bytes of outgoing");
        return move_own(p, name, out.data(), in.data(), out.size_bytes(), s);
      }
      in_nccl_group(p, name, [&] {
        send_bytes(p, name, out.data(), out.size_bytes(), destination.rank, s);
        receive_bytes(p, name, in.data(), in.size_bytes(), source.rank, s);
      });
    });
  }

  template <class Out, class In, message_label Label, class... Options>
  stream_ordered exchange(Out&&, to, In&&, from, Label, Options&&...) const {
    return tagged<Label>();
  }

  /// Starts messages together: `batch(sending(a, to{1}, tag{2}), receiving(b, from{1}, tag{1}))`, or a std::vector of these.
  /// Options follow the messages and hold for all of them.
  ///
  /// Result:    what stands on the stream; `co_await` it or its all()
  /// Shapes:    a receive has as many elements as its message
  /// Needs:     of two ranks, the messages between them under the same tags in one batch on both: NCCL sees no tags and
  ///            compares nothing, so that what does not fit waits for a deadline, or is wrong data
  /// Order:     messages between two ranks match by tag, in whatever order a batch names them; under one tag in the order in
  ///            which they are given, which is that of send and recv too. No order among them can make them wait for each
  ///            other
  /// Completes: on the stream, all together
  /// Errors:    invalid_argument (rank, tag, memory; a message to this rank itself without its other half), closed, io_error
  /// Cost:      one launch; a vector of messages is copied
  template <class... Rest>
    requires(std::same_as<std::remove_cvref_t<Rest>, device_message> || ...)
  device_batch batch(const Rest&... rest)
  const {
    constexpr std::size_t count = (std::size_t{0} + ... + (std::same_as<Rest, device_message> ? 1 : 0));
    std::array<device_message, count> messages;
    std::size_t at = 0;
    device_options options;
    (take(rest, messages, at, options), ...);
    return start_batch(messages, options);
  }
  template <class First, class... Rest>
    requires(!std::same_as<First, device_message> && (!std::same_as<Rest, device_message> && ...))
  device_batch batch(const First&, const Rest&...)
  const {
    static_assert(
        always_false<First>,
        "cohort: a batch of this backend moves memory of a device: sending(grad.device_view(), to{1}), "
        "receiving(next.device_view(), from{1}); messages of host memory are started on the communicator of the "
        "host that this one was made of");
    return {refused_operation(), 0};
  }
  template <class... Options>
  device_batch batch(const std::vector<device_message>& messages, const Options&... options) const {
    std::vector<device_message> ordered = messages;
    return start_batch(ordered, device_options_of(options...));
  }

 private:
  [[nodiscard]] const nccl_front& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }
  template <class Label>
  [[nodiscard]] stream_ordered tagged() const {
    if constexpr (check_device_label<Label>()) {
      static_assert(
          !std::is_same_v<Label, tag>,
          "cohort: NCCL has no tags, its messages match in the order of the calls: leave the tag out where that "
          "order is the same on both ranks; where it is not, start them together and the tags decide: "
          "world.batch(sending(a, to{1}, tag{2}), receiving(b, from{1}, tag{1}))");
    }
    return refused_operation();
  }
  template <class Rest, std::size_t Count>
  static void take(const Rest& rest, std::array<device_message, Count>& messages, std::size_t& at,
                   device_options& options) {
    if constexpr (std::same_as<Rest, device_message>) messages[at++] = rest;
    else if constexpr (check_device_options<Rest>() && device_option<Rest>) options.add(rest);
  }
  [[nodiscard]] device_batch start_batch(std::span<device_message> messages, const device_options& o) const {
    constexpr const char* name = "batch";
    return {calls().start_by_nccl(name, o,
                                  [&](nccl_party& p, cudaStream_t s) {
                                    for (const device_message& m : messages) check_message(m);
                                    order_by_tag(messages);
                                    if (const std::string wrong = unmatched_own(messages, p.rank()); !wrong.empty()) {
                                      calls().refuse(name, wrong);
                                    }
                                    in_nccl_group(p, name, [&] {
                                      for (const device_message& m : messages) {
                                        if (m.sends) send_bytes(p, name, m.from, m.bytes, m.peer, s);
                                        else receive_bytes(p, name, m.into, m.bytes, m.peer, s);
                                      }
                                    });
                                  }),
            messages.size()};
  }
  void check_message(const device_message& m) const {
    constexpr const char* name = "batch";
    calls().check_peer(name, m.sends ? "destination" : "source", m.peer);
    if (m.label < 0) calls().refuse(name, "tag " + std::to_string(m.label) + ": expected 0 or more");
    const device_span<const std::byte> where(static_cast<const std::byte*>(m.sends ? m.from : m.into), m.bytes);
    calls().check_memory(name, "buffer", where);
  }
  void check_partner(const nccl_party& p, const char* operation, const char* role, int peer) const {
    calls().check_peer(operation, role, peer);
    if (peer == p.rank() && !in_open_group()) {
      calls().refuse(operation, std::string(role) + " " + std::to_string(peer) +
                                    " is this rank itself: a message to itself waits for its other half, so write both "
                                    "in one group([&](auto& g) { ... }), or use exchange");
    }
  }
};

}  // namespace cohort::detail
