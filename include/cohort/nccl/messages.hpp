// SPDX-License-Identifier: BSL-1.0
// The point-to-point calls of communicator<nccl>: send, recv, exchange. A base of the communicator; what is sent is bytes,
// so any element type will do.
#pragma once

#include <cohort/nccl/blocks.hpp>
#include <cohort/nccl/front.hpp>

#include <concepts>
#include <utility>

namespace cohort::detail {

template <class Communicator>
class nccl_message_calls {
 public:
  /// Sends a buffer to a rank.
  ///
  /// Needs:     a recv of as many bytes there. Two ranks that send to each other do it in one group() or by exchange:
  ///            a send of NCCL's may wait for its receive
  /// Order:     messages between two ranks match in the order of the calls; there are no tags
  /// Completes: on the stream, when the buffer may be reused
  /// Errors:    invalid_argument (destination, memory, itself outside of a group), closed, io_error
  template <class Buffer, class... Options>
  stream_ordered send(Buffer&& buffer, to destination, Options&&... options) const {
    check_device_buffer<Buffer>();
    constexpr const char* name = "send";
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
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
    return refused();
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
    return calls().start(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t s) {
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
    return refused();
  }
  template <class Buffer, class... Options>
  stream_ordered recv(Buffer&&, from_any_t, Options&&...) const {
    static_assert(
        always_false<Buffer>,
        "cohort: NCCL cannot receive from whoever comes first: write from{rank}, or use communicator<cpu> for "
        "such messages");
    return refused();
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

 private:
  [[nodiscard]] const nccl_front& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }
  [[nodiscard]] stream_ordered refused() const { return stream_ordered(calls().party(), nullptr, "refused"); }
  void check_partner(const nccl_party& p, const char* operation, const char* role, int peer) const {
    calls().check_peer(operation, role, peer);
    if (peer == p.rank() && !p.in_group) {
      calls().refuse(operation, std::string(role) + " " + std::to_string(peer) +
                                    " is this rank itself: a message to itself waits for its other half, so write both "
                                    "in one group([&](auto& g) { ... }), or use exchange");
    }
  }
};

}  // namespace cohort::detail
