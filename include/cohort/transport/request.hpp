// SPDX-License-Identifier: BSL-1.0
// A posted send or receive, as every transport sees it. Requests live in the frame of the operation that
// posted them; a transport only links them into its queues until they are complete or withdrawn.
#pragma once

#include <cohort/transport/linked_list.hpp>
#include <cohort/transport/piece.hpp>
#include <cohort/transport/signature.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace cohort {
class call;
}

namespace cohort::transport {

/// What stands in the header of a message.
struct envelope {
  std::uint64_t context = 0;   ///< the communicator
  std::uint32_t sequence = 0;  ///< number of the collective, or the tag
  bool tagged = false;         ///< a point-to-point message
  int source = -1;             ///< world rank of the sender
  std::uint64_t bytes = 0;
  signature call{};
};

struct request;

/// Requests that are awaited together: one counter, one resumption.
struct transfer_set {
  cohort::call* owner = nullptr;
  std::size_t pending = 0;
  /// Until it has gone on, so also while it is among those that the engine is about to resume: who drops the operation
  /// takes it back from there.
  std::coroutine_handle<> waiter{};
  bool failed = false;
  request* requests = nullptr;
  std::size_t request_count = 0;
};

struct request {
  request* previous = nullptr;
  request* next = nullptr;
  transfer_set* owner = nullptr;
  int peer = -1;               ///< world rank of the other side; -1: any source
  envelope header{};           ///< what is sent; of a receive: what is expected, then what came
  const piece* pieces = nullptr;
  std::size_t piece_count = 0;
  std::size_t moved = 0;       ///< bytes sent or received so far; the transport's
  void* place = nullptr;       ///< where the transport has put it; null: nowhere
  std::uint64_t ticket = 0;    ///< the transport's own number for it
  bool sending = false;
  bool any_tag = false;
  bool probing = false;    ///< asks for the header of a message, which stays where it is
  bool immediate = false;  ///< of a probe: does not wait; its header has the source -1 when there is no message
  bool complete = false;
  /// Of a receive whose buffer grows: makes room for what the header says and sets the pieces; false when it cannot.
  bool (*make_room)(request& r, std::uint64_t bytes) noexcept = nullptr;
  void* room = nullptr;
  /// Of a receive that is used while it arrives, so that its pieces may lie in one place, or in a few in turn: called with the
  /// number of each piece when that is full, in order, and before a byte of the next one in its place is written. Where a message
  /// comes over several streams: with each part of a piece, in any order, which lies elsewhere and is of some multiple of what the lengths
  /// of all pieces have in common, `offset` too. Not with `make_room`.
  void (*piece_filled)(const request& r, std::size_t number, std::size_t offset, const std::byte* data,
                       std::size_t bytes) noexcept = nullptr;

  [[nodiscard]] bool tagged() const noexcept { return header.tagged; }
};

using request_list = linked_list<request>;

}  // namespace cohort::transport
