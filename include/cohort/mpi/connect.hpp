// SPDX-License-Identifier: BSL-1.0
// connect<mpi>: the world of an MPI job, or of a communicator that the program has. Who is who MPI knows itself: no
// address and no variables of a launcher are needed.
#pragma once

#include <cohort/communicator.hpp>
#include <cohort/impl/sharing_options.hpp>
#include <cohort/impl/use_tuning.hpp>
#include <cohort/launch.hpp>
#include <cohort/mpi/device_memory.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/library.hpp>
#include <cohort/mpi/selection.hpp>
#include <cohort/mpi/tag.hpp>
#include <cohort/uri.hpp>

#include <chrono>
#include <concepts>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
  /// Ranks of one machine with different ones are taken for ranks of different hosts.
  std::string host_id{};

  mpi_options() = default;
};

/// The options that this process's environment gives.
///
/// Result: COHORT_TIMEOUT (seconds), COHORT_ALGORITHMS, COHORT_TUNING, COHORT_MPI_CHECK (always or never),
///         COHORT_MPI_DEVICE (auto or staged), COHORT_SHM (0 or 1), COHORT_HOST_ID (at most 64 characters)
/// Errors: errc::bad_environment naming the variable
[[nodiscard]] inline mpi_options mpi_options_from_environment(const environment& env = environment{}) {
  mpi_options o;
  if (const auto text = env.get("COHORT_TIMEOUT")) {
    char* end = nullptr;
    const double seconds = std::strtod(text->c_str(), &end);
    constexpr double longest = 86400.0 * 365;
    if (text->empty() || *end != '\0' || !(seconds > 0) || seconds > longest) {
      throw error(errc::bad_environment, "COHORT_TIMEOUT=" + detail::quoted(*text) + ": expected seconds, more than 0");
    }
    o.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  }
  o.algorithms = env.get("COHORT_ALGORITHMS").value_or("");
  o.tuning = env.get("COHORT_TUNING").value_or("");
  if (const auto text = env.get("COHORT_MPI_CHECK")) {
    if (*text != "always" && *text != "never") {
      throw error(errc::bad_environment, "COHORT_MPI_CHECK=" + detail::quoted(*text) + ": expected always or never");
    }
    o.check = *text == "never" ? transport::native_check::never : transport::native_check::always;
  }
  if (const auto text = env.get("COHORT_MPI_DEVICE")) {
    if (*text != "auto" && *text != "staged") {
      throw error(errc::bad_environment, "COHORT_MPI_DEVICE=" + detail::quoted(*text) + ": expected auto or staged");
    }
    o.device_memory = *text == "staged" ? mpi_device_memory::staged : mpi_device_memory::as_mpi_can;
  }
  detail::read_sharing(o, env);
  return o;
}

/// A world of the ranks of `adopted`, which is duplicated: the program may use its own as before.
///
/// Completes: when every rank of `adopted` has called it; blocks until then
/// Errors:    closed if MPI has been finalised, version_mismatch, invalid_argument, or io_error with MPI's words
/// Lifetime:  several worlds in one process are fine. MPI is initialised here if nobody has, and then finalised at the
///            exit of the process; a program that finalises MPI itself does so after the last communicator is gone
template <std::same_as<mpi> Backend>
[[nodiscard]] communicator<Backend> connect(MPI_Comm adopted, const mpi_options& o) {
  detail::require_mpi();
  transport::mpi_endpoint::settings wanted;
  wanted.check = o.check;
  wanted.device_memory = o.device_memory;
  wanted.shared_memory = o.shared_memory;
  wanted.host_id = o.host_id;
  auto endpoint = std::make_shared<transport::mpi_endpoint>(adopted, wanted);
  std::vector<int> members(static_cast<std::size_t>(endpoint->size()));
  for (std::size_t r = 0; r < members.size(); ++r) members[r] = static_cast<int>(r);
  const int rank = endpoint->rank();
  const auto world = std::make_shared<group>(std::move(endpoint), 0, "world", std::move(members), rank);
  world->default_timeout = o.timeout;
  world->selection = detail::mpi_selection(o.check);
  detail::use_tuning(*world, read_tuning(o.tuning));
  world->selection.override_with(o.algorithms);
  return communicator<Backend>(world);
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
