// SPDX-License-Identifier: BSL-1.0
// What MPI returns as an error of this library: the function, and MPI's own words. Used by everything in mpi/.
#pragma once

#include <cohort/error.hpp>
#include <cohort/mpi/header.hpp>

#include <string>

namespace cohort::detail {

/// MPI's words for a code, and the class that it belongs to.
[[nodiscard]] inline std::string mpi_words(int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return "error code " + std::to_string(code);
  return {text, static_cast<std::size_t>(length)};
}

[[nodiscard]] inline errc mpi_condition(int code) noexcept {
  int error_class = MPI_ERR_OTHER;
  MPI_Error_class(code, &error_class);
  switch (error_class) {
    case MPI_ERR_TRUNCATE: return errc::truncated;
    case MPI_ERR_NO_MEM: return errc::out_of_memory;
    default: return errc::io_error;
  }
}

/// "MPI_Isend: MPI_ERR_RANK: invalid rank"
[[nodiscard]] inline std::string mpi_sentence(int code, const char* function) {
  return std::string{function} + ": " + mpi_words(code);
}

/// Errors: io_error, out_of_memory or truncated, with the function and MPI's words
inline void check_mpi(int code, const char* function) {
  if (code != MPI_SUCCESS) throw error(mpi_condition(code), mpi_sentence(code, function));
}

}  // namespace cohort::detail
