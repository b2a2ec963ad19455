// SPDX-License-Identifier: BSL-1.0
// What a communicator<cpu> sees of whatever carries its messages: the engine, and two functions. tcp.hpp implements it;
// nothing above this header includes Boost.Asio.
#pragma once

#include <cohort/transport/engine.hpp>

namespace cohort::transport {

class cpu_transport : public engine {
 public:
  using engine::engine;

  /// Starts a transfer; it is complete when `engine::complete` was called for it.
  virtual void start(request& r) = 0;
  /// Waits until every rank has left: what this rank sent has been used by then. False when the deadline came first.
  virtual bool wait_until_all_left(clock::time_point deadline) = 0;
};

}  // namespace cohort::transport
