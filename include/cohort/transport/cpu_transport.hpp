// SPDX-License-Identifier: BSL-1.0
// What a communicator<cpu> sees of whatever carries its messages: the engine with the memory of its host, and the start of
// a transfer. tcp.hpp implements it; nothing above this header includes Boost.Asio.
#pragma once

#include <cohort/transport/sharing_engine.hpp>

namespace cohort::transport {

class cpu_transport : public sharing_engine {
 public:
  using sharing_engine::sharing_engine;

  /// The pieces of a receive are filled in order, and `request::piece_filled` is called.
  static constexpr bool tells_of_pieces = true;

  /// Starts a transfer; it is complete when `engine::complete` was called for it.
  virtual void start(request& r) = 0;
  /// Whether what is sent to that rank goes through a socket: this rank writes it, while it waits.
  [[nodiscard]] virtual bool writes_to(int to) const = 0;
  /// Waits until every rank has left: what this rank sent has been used by then. False when the deadline came first.
  virtual bool wait_until_all_left(clock::time_point deadline) = 0;
};

}  // namespace cohort::transport
