// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/connect.hpp.
#pragma once

#include <cohort/impl/sharing_options.hpp>
#include <cohort/impl/use_tuning.hpp>
#include <cohort/mpi/connect.hpp>
#include <cohort/mpi/library.hpp>
#include <cohort/mpi/selection.hpp>
#include <cohort/uri.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace cohort {

COHORT_DECL mpi_options mpi_options_from_environment(const environment& env) {
  mpi_options o;
  if (const auto text = env.get("COHORT_TIMEOUT")) o.timeout = detail::parse_seconds(*text, "COHORT_TIMEOUT");
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

namespace detail {

COHORT_DECL std::shared_ptr<group> adopt_mpi(MPI_Comm adopted, const mpi_options& o) {
  require_mpi();
  if (adopted == MPI_COMM_NULL) {
    throw error(
        errc::invalid_argument,
        "connect<mpi>: the communicator is MPI_COMM_NULL, as MPI_Comm_split gives to a process that is in no part: "
        "only its members connect");
  }
  transport::mpi_endpoint::settings wanted;
  wanted.check = o.check;
  wanted.device_memory = o.device_memory;
  wanted.shared_memory = o.shared_memory;
  wanted.copies = o.copies;
  wanted.host_id = o.host_id;
  auto endpoint = std::make_shared<transport::mpi_endpoint>(adopted, wanted);
  std::vector<int> members(static_cast<std::size_t>(endpoint->size()));
  for (std::size_t r = 0; r < members.size(); ++r) members[r] = static_cast<int>(r);
  const int rank = endpoint->rank();
  const auto world = std::make_shared<group>(std::move(endpoint), 0, "world", std::move(members), rank);
  world->default_timeout = o.timeout;
  world->selection = mpi_selection(o.check);
  use_tuning(*world, read_tuning(o.tuning));
  world->selection.override_with(o.algorithms);
  return world;
}

}  // namespace detail
}  // namespace cohort
