// SPDX-License-Identifier: BSL-1.0
// The MPI backend: the ranks of an MPI job, over any MPI library. Compile with the library's own wrapper, or with
// CMake's MPI::MPI_CXX.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/mpi/connect.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/native.hpp>
#include <cohort/mpi/native_start.hpp>
#include <cohort/mpi/run.hpp>
