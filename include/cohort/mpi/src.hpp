// SPDX-License-Identifier: BSL-1.0
// What src.hpp is to the core, for the MPI backend: programs that define COHORT_SEPARATE_COMPILATION and use backend/mpi.hpp
// include this header too in exactly one of their sources, that of src.hpp or another.
#pragma once

#ifndef COHORT_SEPARATE_COMPILATION
#error \
    "cohort/mpi/src.hpp is for programs that define COHORT_SEPARATE_COMPILATION in every source; without it include backend/mpi.hpp alone"
#endif

#include <cohort/backend/compiled_once.hpp>
#include <cohort/mpi/connect.hpp>
#include <cohort/mpi/impl/agreement.hpp>
#include <cohort/mpi/impl/communicators.hpp>
#include <cohort/mpi/impl/connect.hpp>
#include <cohort/mpi/impl/endpoint.hpp>
#include <cohort/mpi/impl/faults.hpp>
#include <cohort/mpi/impl/giving_back.hpp>
#include <cohort/mpi/impl/links.hpp>
#include <cohort/mpi/impl/memory.hpp>
#include <cohort/mpi/impl/messages.hpp>
#include <cohort/mpi/impl/native.hpp>
#include <cohort/mpi/impl/native_collectives.hpp>
#include <cohort/mpi/impl/parts.hpp>
#include <cohort/mpi/impl/prompt.hpp>
#include <cohort/mpi/impl/transfers.hpp>
#include <cohort/mpi/tag.hpp>

namespace cohort {

COHORT_TEMPLATES_OF(template, transport::mpi_endpoint)
COHORT_WINDOW_TEMPLATES_OF(template, transport::mpi_endpoint)

}  // namespace cohort
