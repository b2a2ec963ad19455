# SPDX-License-Identifier: BSL-1.0
# find_package(NCCL [VERSION]): NVIDIA's collectives, which come without a CMake package.
#
# Hints:   NCCL_ROOT, NCCL_HOME (variables of CMake or of the environment), CUDAToolkit_ROOT, CUDA_HOME, /usr/local/cuda
# Result:  NCCL_FOUND, NCCL_VERSION (from nccl.h), NCCL_INCLUDE_DIR, NCCL_LIBRARY, and the target NCCL::NCCL
set(nccl_hints ${NCCL_HOME} ENV NCCL_HOME ${CUDAToolkit_ROOT} ENV CUDAToolkit_ROOT ENV CUDA_HOME ENV CUDA_PATH)
if(CUDAToolkit_TARGET_DIR)
  list(APPEND nccl_hints ${CUDAToolkit_TARGET_DIR})
endif()

# NCCL_ROOT is looked at first by CMake itself.
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${nccl_hints} PATHS /usr/local/cuda PATH_SUFFIXES include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nccl_hints} PATHS /usr/local/cuda
             PATH_SUFFIXES lib lib64 lib/${CMAKE_LIBRARY_ARCHITECTURE})
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
unset(nccl_hints)

set(NCCL_VERSION "")
if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_lines REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" NCCL_VERSION "${nccl_lines}")
  list(JOIN NCCL_VERSION "." NCCL_VERSION)
  unset(nccl_lines)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION
                                  HANDLE_VERSION_RANGE
                                  REASON_FAILURE_MESSAGE "set NCCL_ROOT to the folder that has include/nccl.h")

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
