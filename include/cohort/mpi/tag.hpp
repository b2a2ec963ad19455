// SPDX-License-Identifier: BSL-1.0
// The tag of the MPI backend.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/native.hpp>
#include <cohort/mpi/native_start.hpp>

#include <string_view>

namespace cohort {

struct mpi {
  using transport_type = transport::mpi_endpoint;
  static constexpr std::string_view name = "mpi";
};

static_assert(backend<mpi>);

}  // namespace cohort
