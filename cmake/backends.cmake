# SPDX-License-Identifier: BSL-1.0
# A backend that needs a library of its own is a target of its own: cohort::mpi is cohort::cohort and MPI::MPI_CXX. The
# target only names what it needs. Who installs this project needs none of it; who links the target must have found it:
# find_package(cohort COMPONENTS mpi) does, and so does COHORT_WITH_MPI=ON in add_subdirectory.

option(COHORT_WITH_MPI "Find MPI, for cohort::mpi" OFF)

# Who works on this project tests the GPU side where its libraries are, whether there is a GPU or not.
set(cohort_nccl_default OFF)
if(PROJECT_IS_TOP_LEVEL)
  list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  find_package(CUDAToolkit QUIET)
  find_package(NCCL 2.28 QUIET)
  list(REMOVE_ITEM CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  if(CUDAToolkit_FOUND AND NCCL_FOUND)
    set(cohort_nccl_default ON)
  endif()
endif()
option(COHORT_WITH_NCCL "Find CUDA and NCCL, for cohort::nccl" ${cohort_nccl_default})

# TLS is no backend, and a target of the same kind: the transport of `cpu` with OpenSSL, which it uses when it is asked to.
set(cohort_tls_default OFF)
if(PROJECT_IS_TOP_LEVEL)
  find_package(OpenSSL 3.0 QUIET)
  set(cohort_tls_default ${OPENSSL_FOUND})
endif()
option(COHORT_WITH_TLS "Find OpenSSL, for cohort::tls" ${cohort_tls_default})

set(cohort_needs_of_mpi MPI::MPI_CXX)
set(cohort_needs_of_nccl NCCL::NCCL CUDA::cudart)

set(cohort_backends "")  # those whose header is here
foreach(backend IN ITEMS mpi nccl)
  if(EXISTS ${PROJECT_SOURCE_DIR}/include/cohort/backend/${backend}.hpp)
    list(APPEND cohort_backends ${backend})
    add_library(cohort_${backend} INTERFACE)
    add_library(cohort::${backend} ALIAS cohort_${backend})
    set_target_properties(cohort_${backend} PROPERTIES EXPORT_NAME ${backend})
    target_link_libraries(cohort_${backend} INTERFACE cohort ${cohort_needs_of_${backend}})
  endif()
endforeach()

add_library(cohort_tls INTERFACE)
add_library(cohort::tls ALIAS cohort_tls)
set_target_properties(cohort_tls PROPERTIES EXPORT_NAME tls)
target_link_libraries(cohort_tls INTERFACE cohort OpenSSL::SSL OpenSSL::Crypto)
target_compile_definitions(cohort_tls INTERFACE COHORT_WITH_TLS)

if(COHORT_WITH_TLS)
  find_package(OpenSSL 3.0 REQUIRED)
endif()
if(COHORT_WITH_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)  # the C++ bindings, which MPI has withdrawn
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(COHORT_WITH_NCCL)
  if(NOT "nccl" IN_LIST cohort_backends)
    message(FATAL_ERROR "COHORT_WITH_NCCL=ON, and this version of cohort has no NCCL backend: there is no "
                        "include/cohort/backend/nccl.hpp. Leave the option off.")
  endif()
  list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
  find_package(CUDAToolkit REQUIRED)
  find_package(NCCL 2.28 REQUIRED)
endif()
