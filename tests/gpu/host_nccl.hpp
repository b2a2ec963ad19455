// SPDX-License-Identifier: BSL-1.0
// What tests tell the NCCL that is played by host_nccl.cpp.
#pragma once

#include <nccl.h>

namespace gpu_test {

/// What NCCL will say that it has noticed by itself.
void set_asynchronous_error(ncclComm_t comm, ncclResult_t code);

/// What it will say when it is asked for an id.
void set_unique_id_result(ncclResult_t code);

}  // namespace gpu_test
