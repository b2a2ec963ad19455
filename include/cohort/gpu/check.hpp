// SPDX-License-Identifier: BSL-1.0
// What CUDA returns as an error of this library: the function, and CUDA's own words. Used by everything in gpu/.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/header.hpp>

#include <string>
#include <string_view>

namespace cohort::detail {

[[nodiscard]] inline bool means_no_device(cudaError_t code) noexcept {
  return code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver || code == cudaErrorStubLibrary ||
         code == cudaErrorSystemDriverMismatch || code == cudaErrorInitializationError;
}

[[nodiscard]] inline errc cuda_condition(cudaError_t code) noexcept {
  if (means_no_device(code)) return errc::bad_environment;
  switch (code) {
    case cudaErrorMemoryAllocation: return errc::out_of_memory;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated: return errc::invalid_argument;
    default: return errc::io_error;
  }
}

/// "cudaMalloc: out of memory (cudaErrorMemoryAllocation)"
[[nodiscard]] inline std::string cuda_sentence(cudaError_t code, std::string_view function) {
  std::string text = std::string(function) + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
  if (means_no_device(code)) {
    text +=
        "; this process reaches no GPU: run it where there is one, and look at the driver (nvidia-smi) and at "
        "CUDA_VISIBLE_DEVICES";
  }
  return text;
}

/// Errors: bad_environment where there is no device, out_of_memory, invalid_argument, else io_error; with the function
///         and CUDA's words
inline void check_cuda(cudaError_t code, std::string_view function) {
  if (code == cudaSuccess) [[likely]]
    return;
  // Else a later call that has nothing to do with this one would report it again.
  static_cast<void>(cudaGetLastError());
  throw error(cuda_condition(code), cuda_sentence(code, function));
}

}  // namespace cohort::detail
