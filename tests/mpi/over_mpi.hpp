// SPDX-License-Identifier: BSL-1.0
// Included before everything else of an example: what it writes for cohort::cpu means cohort::mpi then.
#pragma once

#include <cohort/backend/mpi.hpp>
#include <cohort/cohort.hpp>

#define cpu mpi
