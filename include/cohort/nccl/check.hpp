// SPDX-License-Identifier: BSL-1.0
// What NCCL returns as an error of this library: the function, NCCL's words for the code, and what it last logged. Used by
// everything in nccl/.
#pragma once

#include <cohort/error.hpp>
#include <cohort/nccl/header.hpp>

#include <string>
#include <string_view>

namespace cohort::detail {

[[nodiscard]] constexpr errc nccl_condition(ncclResult_t code) noexcept {
  switch (code) {
    case ncclInvalidArgument:
    case ncclInvalidUsage: return errc::invalid_argument;
    case ncclRemoteError: return errc::peer_lost;
    default: return errc::io_error;
  }
}

/// Whether a communicator can be used on after this: only an argument was refused.
[[nodiscard]] constexpr bool nccl_survives(ncclResult_t code) noexcept {
  return code == ncclSuccess || code == ncclInProgress || code == ncclInvalidArgument;
}

/// "ncclAllReduce: remote process exited or there was a network error (ncclRemoteError): ..."
[[nodiscard]] inline std::string nccl_sentence(ncclResult_t code, std::string_view function, ncclComm_t comm) {
  std::string text = std::string(function) + ": " + ncclGetErrorString(code);
  const char* const last = ncclGetLastError(comm);
  if (last != nullptr && *last != '\0') text += std::string("; NCCL's last words: ") + last;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// Where no communicator is at stake.
///
/// Errors: invalid_argument, peer_lost or io_error, with the function and NCCL's words
inline void check_nccl(ncclResult_t code, std::string_view function) {
  if (code != ncclSuccess) throw error(nccl_condition(code), nccl_sentence(code, function, nullptr));
}

/// "2.28.9", of what ncclGetVersion gives.
[[nodiscard]] inline std::string nccl_version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

[[nodiscard]] inline int nccl_version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  return version;
}

}  // namespace cohort::detail
