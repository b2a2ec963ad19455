// SPDX-License-Identifier: BSL-1.0
// What stands in for CUDA's runtime where there is no GPU: host_runtime.cpp.
#pragma once

#include <cohort/gpu/header.hpp>

#include <cstddef>
#include <functional>

namespace gpu_test {

/// Puts work on a stream, in the place of a kernel.
void enqueue_on_host(cudaStream_t s, std::function<void()> work);

/// How many devices there seem to be; one unless set.
void set_host_devices(int count);

/// Of this thread, and of a stream.
[[nodiscard]] int current();
[[nodiscard]] int device_of(cudaStream_t s);

/// Whether a stream says that it is being captured. What is put on it is carried out all the same.
void set_capturing(cudaStream_t s, bool yes);

/// The flag of a stream waits for room where so many pieces of work are on it already, as a driver makes a thread wait whose
/// queue is full. As many as there are unless set.
void set_room_of_streams(std::size_t pieces);

}  // namespace gpu_test
