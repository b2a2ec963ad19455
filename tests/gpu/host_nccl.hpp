// SPDX-License-Identifier: BSL-1.0
// What tests tell the NCCL that is played by host_nccl.cpp.
#pragma once

#include <nccl.h>

#include <atomic>
#include <functional>

namespace gpu_test {

/// What NCCL will say that it has noticed by itself.
void set_asynchronous_error(ncclComm_t comm, ncclResult_t code);

/// What it says when it is asked for an id.
inline std::atomic<ncclResult_t> unique_id_result{ncclSuccess};

/// What happens while this thread deregisters a window.
inline thread_local std::function<void()> while_deregistering{};

}  // namespace gpu_test
