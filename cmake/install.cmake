# SPDX-License-Identifier: BSL-1.0
# Install rules: headers, the CMake package (`find_package(cohort 0.1)` gives cohort::cohort), and, from the build
# tree too, the targets file.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(cohort_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cohort)

install(TARGETS cohort EXPORT cohortTargets FILE_SET HEADERS)
install(EXPORT cohortTargets NAMESPACE cohort:: DESTINATION ${cohort_package_dir})

configure_package_config_file(cmake/cohortConfig.cmake.in ${PROJECT_BINARY_DIR}/cohortConfig.cmake
                              INSTALL_DESTINATION ${cohort_package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/cohortConfig.cmake ${PROJECT_BINARY_DIR}/cohortConfigVersion.cmake
        DESTINATION ${cohort_package_dir})
export(EXPORT cohortTargets NAMESPACE cohort::)
