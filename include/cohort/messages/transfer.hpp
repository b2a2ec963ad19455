// SPDX-License-Identifier: BSL-1.0
// Point-to-point operations: one request, or two that start together. Called by communicator/messages.hpp; the bodies
// call the transport.
#pragma once

#include <cohort/messages/growing.hpp>
#include <cohort/operation.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cohort::messages {

/// One end of a message: where its bytes are, and whom it goes to or comes from.
struct end {
  transport::piece bytes{};
  std::size_t element_bytes = 1;
  int peer = -1;  ///< rank of the communicator; -1: any source
  int tag = 0;
  bool any_tag = false;
  cohort::detail::growing_room room{};  ///< of a receive whose buffer grows
};

/// Whose the bytes of a send are: the caller's, or the operation's own, which keeps them in its frame.
struct borrowed_bytes {
  [[nodiscard]] const end& placed(const end& e) const noexcept { return e; }
};
struct owned_bytes {
  std::vector<std::byte> bytes;
  explicit owned_bytes(std::vector<std::byte> b) noexcept : bytes(std::move(b)) {}
  [[nodiscard]] end placed(end e) noexcept {
    e.bytes = {bytes.data(), bytes.size()};
    return e;
  }
};

// What is handed on by reference is not copied: a copy of what has just been written in parts is read in one, and waits for
// all writes before it, those of the last message to memory that the other rank reads among them.

/// Result is void or `received`. A short message that can leave at once has left when this returns, and needs no frame.
template <transport::message_transport Transport, class Result = void, class Bytes = borrowed_bytes>
operation<Result> send(cohort::detail::ticket&& t, const end& what, Bytes kept = Bytes());

/// A short message of one rank that is here, or comes within a moment, is received when this returns, without a frame.
template <transport::message_transport Transport>
operation<received> receive(cohort::detail::ticket&& t, const end& what);

/// The same as a part of another operation.
template <transport::message_transport Transport>
task<received> receive_within(call& c, end what);

/// A look at the message that a receive would get. Result is received, or a std::optional of it for a look that does
/// not wait.
template <transport::message_transport Transport, class Result>
operation<Result> look(cohort::detail::ticket t, end what, bool immediate);

/// The call's own element type is that of what it sends.
template <transport::message_transport Transport>
operation<received> exchange(cohort::detail::ticket t, end outgoing, end incoming, std::uint16_t incoming_type);

}  // namespace cohort::messages

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/messages/bodies/transfer.hpp>
#endif
