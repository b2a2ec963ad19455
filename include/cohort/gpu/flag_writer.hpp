// SPDX-License-Identifier: BSL-1.0
// How a stream tells the host that it has come somewhere: it writes a number into pinned memory, by the driver's
// cuStreamWriteValue64. Asked of the runtime by name, so that no program links the driver. Used by poller.hpp.
#pragma once

#include <cohort/gpu/check.hpp>
#include <cohort/gpu/header.hpp>

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace cohort::detail {

/// Any thread.
class flag_writer {
 public:
  flag_writer() {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSymbolNotFound;
    // The version of the function whose signature is written below: a later driver still has it.
    constexpr unsigned int signature_of = 11070;
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &found, signature_of, cudaEnableDefault, &how);
    if (code != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      missing_ = cuda_sentence(code, "cudaGetDriverEntryPointByVersion");
    } else if (how != cudaDriverEntryPointSuccess || found == nullptr) {
      missing_ = "the driver has no cuStreamWriteValue64";
    } else {
      write_ = reinterpret_cast<function>(found);
    }
  }

  [[nodiscard]] bool available() const noexcept { return write_.load() != nullptr; }
  /// Why it is not.
  [[nodiscard]] std::string missing() const {
    const std::lock_guard lock(mutex_);
    return missing_;
  }

  /// `place`, an address that the device knows, holds `value` when all that is on the stream now has been done.
  ///
  /// Result: false if the driver refuses it here; what is on the stream is as before then
  [[nodiscard]] bool write(cudaStream_t s, void* place, std::uint64_t value) {
    const function writes = write_.load();
    if (writes == nullptr) return false;
    const CUresult code = writes(s, reinterpret_cast<CUdeviceptr>(place), value, CU_STREAM_WRITE_VALUE_DEFAULT);
    if (code == CUDA_SUCCESS) return true;
    if (code != CUDA_ERROR_NOT_SUPPORTED && code != CUDA_ERROR_INVALID_VALUE && code != CUDA_ERROR_NOT_PERMITTED) {
      // Not about flags: the device has failed, and the caller's next call says how.
      return false;
    }
    const std::lock_guard lock(mutex_);
    missing_ =
        "cuStreamWriteValue64 is refused on this device (driver code " + std::to_string(static_cast<int>(code)) + ")";
    write_ = nullptr;
    return false;
  }

 private:
  using function = CUresult(CUDAAPI*)(CUstream, CUdeviceptr, cuuint64_t, unsigned int);
  std::atomic<function> write_{nullptr};
  mutable std::mutex mutex_{};
  std::string missing_{};
};

}  // namespace cohort::detail
