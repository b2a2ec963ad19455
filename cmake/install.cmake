# SPDX-License-Identifier: BSL-1.0
# Install rules: headers, the CMake package, cohort.pc. The CMake package works from the build tree too.
#
#   find_package(cohort 0.1)                      cohort::cohort
#   find_package(cohort 0.1 COMPONENTS mpi)       cohort::mpi, and finds MPI
#   find_package(cohort 0.1 COMPONENTS tls)       cohort::tls, and finds OpenSSL
#   find_package(cohort 0.1 COMPONENTS tools)     cohort::tool, the `cohort` program
#
# Each component has its own targets file, which is read when the component is asked for: nobody needs MPI to be there
# who does not use it.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(cohort_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)

install(TARGETS cohort EXPORT cohortTargets FILE_SET HEADERS)
install(EXPORT cohortTargets NAMESPACE cohort:: DESTINATION ${cohort_package_dir})
export(EXPORT cohortTargets NAMESPACE cohort::)

# cohort_install_component(NAME TARGET [ARTIFACT]): TARGET becomes what `COMPONENTS NAME` gives.
function(cohort_install_component name target)
  install(TARGETS ${target} EXPORT cohort-${name}Targets ${ARGN})
  install(EXPORT cohort-${name}Targets NAMESPACE cohort:: DESTINATION ${cohort_package_dir})
  export(EXPORT cohort-${name}Targets NAMESPACE cohort::)
endfunction()

foreach(backend IN LISTS cohort_backends)
  cohort_install_component(${backend} cohort_${backend})
endforeach()
cohort_install_component(tls cohort_tls)

set(cohort_components ${cohort_backends} tls)
if(COHORT_BUILD_TOOLS)
  list(APPEND cohort_components tools)  # tools/CMakeLists.txt installs it
endif()

configure_package_config_file(cmake/cohortConfig.cmake.in ${PROJECT_BINARY_DIR}/cohortConfig.cmake
                              INSTALL_DESTINATION ${cohort_package_dir}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a new minor version may change what a program relies on.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/cohortConfig.cmake ${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake
        DESTINATION ${cohort_package_dir})
if("nccl" IN_LIST cohort_backends)
  install(FILES cmake/FindNCCL.cmake DESTINATION ${cohort_package_dir})
  configure_file(cmake/FindNCCL.cmake ${PROJECT_BINARY_DIR}/FindNCCL.cmake COPYONLY)
endif()

# cohort.pc finds its prefix from where it lies, so that an installed tree can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
           OUTPUT_VARIABLE cohort_pc_to_prefix)
if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(cohort_pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(cohort_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/cohort.pc.in ${PROJECT_BINARY_DIR}/cohort.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cohort.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
