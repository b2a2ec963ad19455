// SPDX-License-Identifier: BSL-1.0
// <mpi.h> without the C++ bindings, which MPI has withdrawn and which need a library of their own, and what Open MPI has
// beyond the standard. The one place that includes them.
#pragma once

// The names are those of Open MPI and of MPICH and its kin; other libraries ignore them.
#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif

#include <mpi.h>

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
