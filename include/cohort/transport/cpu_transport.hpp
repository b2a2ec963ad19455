// SPDX-License-Identifier: BSL-1.0
// What a communicator<cpu> sees of whatever carries its messages: the engine, the start of a transfer, and the memory
// that ranks of one host share. tcp.hpp implements it; nothing above this header includes Boost.Asio.
#pragma once

#include <cohort/transport/engine.hpp>
#include <cohort/transport/shm/flag_wait.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/regions.hpp>

#include <memory>

namespace cohort::transport {

class cpu_transport : public engine {
 public:
  using engine::engine;

  /// The pieces of a receive are filled in order, and `request::piece_filled` is called.
  static constexpr bool tells_of_pieces = true;

  /// Starts a transfer; it is complete when `engine::complete` was called for it.
  virtual void start(request& r) = 0;
  /// Sends a short message that can leave at once; its bytes may be reused. False: nothing was sent.
  [[nodiscard]] virtual bool send_now(int peer, const envelope& header, const piece& payload) = 0;
  /// Receives a short message that is here, or comes within a moment, where nobody has asked for one before. False:
  /// nothing was received, and what is here is left there.
  [[nodiscard]] virtual bool receive_now(int peer, const envelope& expected, const piece& into, envelope& came) = 0;
  /// Whether no message is here that nobody has asked for.
  [[nodiscard]] virtual bool nothing_early() const noexcept = 0;
  /// Waits until every rank has left: what this rank sent has been used by then. False when the deadline came first.
  virtual bool wait_until_all_left(clock::time_point deadline) = 0;

  /// The ranks of this host; null when this rank shares memory with nobody.
  [[nodiscard]] neighbours* host_ranks() const noexcept { return neighbours_.get(); }
  /// The registered buffers; null where `host_ranks` is.
  [[nodiscard]] regions* shared_buffers() const noexcept { return regions_.get(); }
  [[nodiscard]] flag_waits& waits() noexcept { return waits_; }

 protected:
  std::unique_ptr<neighbours> neighbours_{};
  std::unique_ptr<regions> regions_{};
  flag_waits waits_{};
};

}  // namespace cohort::transport
