// SPDX-License-Identifier: BSL-1.0
// connect<mpi>: the world of an MPI job, or of a communicator that the program has. Who is who MPI knows itself: no
// address and no variables of a launcher are needed.
#pragma once

#include <cohort/communicator.hpp>
#include <cohort/launch.hpp>
#include <cohort/mpi/device_memory.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/library.hpp>
#include <cohort/mpi/tag.hpp>
#include <cohort/transport/shm/copy_choice.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>

namespace cohort {

struct mpi_options {
  std::chrono::nanoseconds timeout = std::chrono::minutes{5};  ///< of an operation that is given none
  std::string algorithms{};  ///< "all_reduce=circulant,broadcast=native": the same on every rank
  std::string tuning{};      ///< text or a file, see tuning.hpp: the same on every rank
  /// Whether the ranks agree on each call before they enter a collective of MPI's own, which could neither tell that
  /// they differ nor be left again. The schedules over MPI's messages check every message in any case.
  transport::native_check check = transport::native_check::always;

  /// Buffers of a device in messages: gpu/staging.hpp.
  mpi_device_memory device_memory = mpi_device_memory::as_mpi_can;

  /// Collectives of ranks that are all on one host go through memory that they share, where each of them allows it:
  /// mostly faster than MPI, and checked whatever `check` says.
  bool shared_memory = true;
  /// Long messages in shared memory: copied twice, through a ring that both ends see; or once, by the kernel, where it lets
  /// processes reach into each other, by the receiver alone or by both ends, each a share. Without a value, whichever has
  /// been faster lately between the two ranks.
  std::optional<transport::copying> copies{};
  /// Ranks of one machine with different ones are taken for ranks of different hosts.
  std::string host_id{};

  mpi_options() = default;
};

/// The options that this process's environment gives.
///
/// Result: COHORT_TIMEOUT (seconds), COHORT_ALGORITHMS, COHORT_TUNING, COHORT_MPI_CHECK (always or never),
///         COHORT_MPI_DEVICE (auto or staged), COHORT_SHM (0 or 1), COHORT_SINGLE_COPY (0, 1, both or auto),
///         COHORT_HOST_ID (at most 64 characters)
/// Errors: errc::bad_environment naming the variable
[[nodiscard]] mpi_options mpi_options_from_environment(const environment& env = environment{});

namespace detail {

/// The world of `connect`.
[[nodiscard]] std::shared_ptr<group> adopt_mpi(MPI_Comm adopted, const mpi_options& o);

}  // namespace detail

/// A world of the ranks of `adopted`, which is duplicated: the program may use its own as before.
///
/// Completes: when every rank of `adopted` has called it; blocks until then
/// Errors:    closed if MPI has been finalised, version_mismatch, invalid_argument, or io_error with MPI's words
/// Lifetime:  several worlds in one process are fine. MPI is initialised here if nobody has, and then finalised at the
///            exit of the process; a program that finalises MPI itself does so after the last communicator is gone
template <std::same_as<mpi> Backend>
[[nodiscard]] communicator<Backend> connect(MPI_Comm adopted, const mpi_options& o) {
  return communicator<Backend>(detail::adopt_mpi(adopted, o));
}
template <std::same_as<mpi> Backend>
[[nodiscard]] communicator<Backend> connect(MPI_Comm adopted) {
  return connect<Backend>(adopted, mpi_options_from_environment());
}
/// The world of the MPI job.
template <std::same_as<mpi> Backend>
[[nodiscard]] communicator<Backend> connect(const mpi_options& o) {
  detail::require_mpi();
  return connect<Backend>(MPI_COMM_WORLD, o);
}
template <std::same_as<mpi> Backend>
[[nodiscard]] communicator<Backend> connect() {
  return connect<Backend>(mpi_options_from_environment());
}

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/mpi/impl/connect.hpp>
#endif
