// SPDX-License-Identifier: BSL-1.0
// Streams: one that belongs to its object, and the option on{stream} that says where a call is enqueued.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/header.hpp>

#include <type_traits>
#include <utility>

namespace cohort {

/// A stream of the device that is current when it is made, which does not wait for the default stream.
///
/// Lifetime: what has been enqueued is carried out even if the object goes before
/// Errors:   bad_environment where there is no device, out_of_memory
class stream {
 public:
  stream() { detail::check_cuda(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  stream(stream&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  stream& operator=(stream&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~stream() {
    if (handle_ != nullptr) static_cast<void>(cudaStreamDestroy(handle_));
  }

  [[nodiscard]] cudaStream_t get() const noexcept { return handle_; }

  /// Blocks this thread until all that was enqueued is done. For ends of programs and for tests.
  ///
  /// Errors: what a kernel or a copy on it has failed with
  void synchronize() const { detail::check_cuda(cudaStreamSynchronize(handle_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t handle_ = nullptr;
};

/// Per-call option: the stream on which the operation is enqueued, instead of the communicator's own.
///
/// Needs: a stream of the communicator's device
struct on {
  cudaStream_t stream;
  constexpr explicit on(cudaStream_t s) noexcept : stream(s) {}
  explicit on(const cohort::stream& s) noexcept : stream(s.get()) {}
};

namespace detail {

/// Whether a stream is one of those that every device has one of.
[[nodiscard]] inline bool is_default_stream(cudaStream_t s) noexcept {
  return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread;
}

/// Whether what is enqueued now becomes a node of a graph instead of being carried out.
[[nodiscard]] inline bool is_capturing(cudaStream_t s) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(s, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace detail
}  // namespace cohort
