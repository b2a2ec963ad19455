// SPDX-License-Identifier: BSL-1.0
// connect<cpu>: joins the world that the launcher describes and gives its communicator. What run.hpp does first;
// programs with an event loop of their own call it themselves.
#pragma once

#include <cohort/backend/cpu.hpp>
#include <cohort/communicator.hpp>
#include <cohort/launch.hpp>
#include <cohort/transport/shm/copy_choice.hpp>

#include <chrono>
#include <concepts>
#include <optional>
#include <string>

namespace boost::asio {
class io_context;
}

namespace cohort {

class any_store;

struct connect_options {
  launch_info launch{};
  std::chrono::nanoseconds join_timeout = std::chrono::minutes{5};   ///< until every rank has come
  std::chrono::nanoseconds timeout = std::chrono::minutes{5};        ///< of an operation that is given none
  std::chrono::nanoseconds peer_timeout = std::chrono::seconds{10};  ///< a rank silent for so long is given up
  std::string bind_address{};        ///< where to listen; empty: the address from which rank 0 is reached
  std::string algorithms{};          ///< "all_reduce=ring,...": the same on every rank
  std::string tuning{};              ///< text or a file, see tuning.hpp; that of rank 0 holds for all
  std::string congestion_control{};  ///< of the kernel, such as cubic; empty: reno on one host, else the host's own
  int stripes = 0;                   ///< connections that carry a long message; 0: one for each 5 Gb/s of the link
  /// Ranks of one machine with different ones are taken for ranks of different hosts; with equal ones they are as the
  /// kernel says.
  std::string host_id{};
  bool shared_memory = true;  ///< with the ranks of this host that allow it too; otherwise TCP to them as well
  /// Long messages in shared memory: copied twice, through a ring that both ends see; or once, by the kernel, where it lets
  /// processes reach into each other, by the receiver alone or by both ends, each a share. Without a value, whichever has
  /// been faster lately between the two ranks.
  std::optional<transport::copying> copies{};

  connect_options() = default;
};

namespace detail {

/// `io` is null when whoever waits for an operation moves the world. The ranks meet at `store` if it is given, which stays
/// open on rank 0 until this returns, else at one that is opened for the meeting.
[[nodiscard]] communicator<cpu> connect_cpu(const connect_options& o, boost::asio::io_context* io,
                                            any_store* store = nullptr);

}  // namespace detail

/// The options that this process's environment gives.
///
/// Result: the launcher's variables, and COHORT_TIMEOUT, COHORT_JOIN_TIMEOUT, COHORT_PEER_TIMEOUT (seconds),
///         COHORT_BIND_ADDRESS, COHORT_ALGORITHMS, COHORT_TUNING, COHORT_TCP_CONGESTION, COHORT_TCP_STRIPES (1 to 32, or
///         auto), COHORT_HOST_ID (at most 64 characters), COHORT_SHM (0 or 1) and COHORT_SINGLE_COPY (0, 1, both or auto)
/// Errors: errc::bad_environment naming the variable
[[nodiscard]] connect_options options_from_environment(const environment& env = environment{});

/// Joins the world; whoever waits for its operations moves it.
///
/// Completes: when every rank has joined; blocks until then
/// Errors:    rendezvous_timeout, duplicate_rank, world_size_mismatch, cannot_resolve, connection_refused,
///            address_in_use, insecure_network, wrong_job
/// Lifetime:  no global state: several worlds in one process are fine
template <std::same_as<cpu> Backend>
[[nodiscard]] communicator<Backend> connect(const connect_options& o) {
  return detail::connect_cpu(o, nullptr);
}
template <std::same_as<cpu> Backend>
[[nodiscard]] communicator<Backend> connect() {
  return detail::connect_cpu(options_from_environment(), nullptr);
}
/// Joins the world on an io_context of the caller's: its handlers move the world, and operations complete there.
///
/// Lifetime: io must outlive the communicator and all its operations; run it on one thread. The world keeps io.run() at
///           work until the communicator is gone; its destruction waits up to a second for the other ranks to end
template <std::same_as<cpu> Backend>
[[nodiscard]] communicator<Backend> connect(boost::asio::io_context& io, const connect_options& o) {
  return detail::connect_cpu(o, &io);
}
template <std::same_as<cpu> Backend>
[[nodiscard]] communicator<Backend> connect(boost::asio::io_context& io) {
  return detail::connect_cpu(options_from_environment(), &io);
}

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/connect.hpp>
#endif
