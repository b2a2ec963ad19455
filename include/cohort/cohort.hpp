// SPDX-License-Identifier: BSL-1.0
// What most programs include: the communicator on the cpu and inproc backends, tasks, functors, and `run`.
// Opt-in headers: asio.hpp (completion tokens), and the headers of the GPU and MPI backends.
#pragma once

#include <cohort/detail/config.hpp>  // first: what a compiler lacks is said before it trips

#include <cohort/as_result.hpp>
#include <cohort/backend/cpu.hpp>
#include <cohort/backend/inproc.hpp>
#include <cohort/bfloat16.hpp>
#include <cohort/communicator.hpp>
#include <cohort/connect.hpp>
#include <cohort/error.hpp>
#include <cohort/float8.hpp>
#include <cohort/half.hpp>
#include <cohort/mesh.hpp>
#include <cohort/operation.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>
#include <cohort/run.hpp>
#include <cohort/run_local.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>
#include <cohort/types.hpp>
#include <cohort/version.hpp>
#include <cohort/when_all.hpp>
