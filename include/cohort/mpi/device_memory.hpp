// SPDX-License-Identifier: BSL-1.0
// Whether this MPI library moves memory of a CUDA device itself: asked of the library, decided once for a world by
// mpi/connect.hpp. Needs nothing of CUDA.
#pragma once

#include <cohort/mpi/header.hpp>

#include <string_view>

namespace cohort {

/// How buffers of a device travel over MPI: by the library if it says that it can, or through pinned memory whatever it
/// says.
enum class mpi_device_memory : bool { as_mpi_can, staged };

/// What the library says. `unasked`: it has no function to ask.
enum class mpi_cuda_support : unsigned char { unasked, no, yes };

[[nodiscard]] constexpr std::string_view name(mpi_cuda_support s) noexcept {
  switch (s) {
    case mpi_cuda_support::yes: return "CUDA-aware";
    case mpi_cuda_support::no: return "not CUDA-aware";
    case mpi_cuda_support::unasked: break;
  }
  return "of a kind that cannot be asked whether it is CUDA-aware";
}

/// Asks the library that the program runs with, which may be another build than the one it was compiled with: the
/// function is there in both builds of it, and tells.
///
/// Needs: MPI is initialised
[[nodiscard]] inline mpi_cuda_support ask_mpi_for_cuda() noexcept {
#if defined(OPEN_MPI) && defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() != 0 ? mpi_cuda_support::yes : mpi_cuda_support::no;
#elif defined(MPICH_NUMVERSION) && defined(MPIX_GPU_SUPPORT_CUDA)
  int supported = 0;
  const bool answered = MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) == MPI_SUCCESS;
  return answered && supported != 0 ? mpi_cuda_support::yes : mpi_cuda_support::no;
#else
  return mpi_cuda_support::unasked;
#endif
}

/// Whether messages go to MPI with the device's own addresses. A library that cannot be asked gets none: it would read
/// them as the host's.
[[nodiscard]] constexpr bool takes_device_memory(mpi_cuda_support library, mpi_device_memory wanted) noexcept {
  return library == mpi_cuda_support::yes && wanted == mpi_device_memory::as_mpi_can;
}

}  // namespace cohort
