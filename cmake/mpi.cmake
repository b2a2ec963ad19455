# SPDX-License-Identifier: BSL-1.0
# The MPI libraries of this machine. Several may be installed side by side, which find_package(MPI) cannot say: it finds
# one, that of MPI_CXX_COMPILER. Given that variable, only that one is taken.

# cohort_add_mpi(FLAVOUR WRAPPER): the interface target cohort_mpi_FLAVOUR, from what the compiler wrapper says about itself,
# and cohort_mpi_bodies_FLAVOUR, which has it.
function(cohort_add_mpi flavour wrapper)
  if(TARGET cohort_mpi_${flavour})
    return()
  endif()
  foreach(question IN ITEMS "-showme" "-show")  # Open MPI's word for it, and MPICH's
    execute_process(COMMAND ${wrapper} ${question} OUTPUT_VARIABLE line RESULT_VARIABLE code ERROR_QUIET
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(code EQUAL 0)
      break()
    endif()
  endforeach()
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${wrapper} says neither with -showme nor with -show what it does: is it a compiler wrapper of MPI?")
  endif()
  separate_arguments(words UNIX_COMMAND "${line}")
  set(libraries "")
  set(includes "")
  set(directories "")
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      list(APPEND includes ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-L(.+)")
      list(APPEND directories ${CMAKE_MATCH_1})
    elseif(word MATCHES "^-lmpi(_cxx|cxx|chcxx)$")
      continue()  # the C++ bindings, which are not used
    elseif(word MATCHES "^-l(.+)")
      list(APPEND libraries ${CMAKE_MATCH_1})
    endif()
  endforeach()
  add_library(cohort_mpi_${flavour} INTERFACE)
  target_include_directories(cohort_mpi_${flavour} SYSTEM INTERFACE ${includes})
  target_link_directories(cohort_mpi_${flavour} INTERFACE ${directories})
  target_link_libraries(cohort_mpi_${flavour} INTERFACE ${libraries})

  # For programs that take the bodies of the core from cohort_bodies: those of the MPI backend, compiled once as well.
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cohort_mpi_bodies.cpp @ONLY
       CONTENT "// SPDX-License-Identifier: BSL-1.0\n#include <cohort/mpi/src.hpp>\n")
  add_library(cohort_mpi_bodies_${flavour} STATIC ${PROJECT_BINARY_DIR}/cohort_mpi_bodies.cpp)
  target_link_libraries(cohort_mpi_bodies_${flavour} PRIVATE cohort_developer PUBLIC cohort_bodies cohort_mpi_${flavour})
endfunction()

# cohort_find_mpis(RESULT): the flavours that are here, each with its targets; COHORT_MPIRUN_<flavour> is the command, with
# what it needs to run more ranks than there are cores, as any user, before -n.
function(cohort_find_mpis result)
  set(found "")
  if(MPI_CXX_COMPILER)
    find_program(COHORT_MPIRUN NAMES mpiexec mpirun HINTS ${MPI_HOME}/bin)
    cohort_add_mpi(chosen ${MPI_CXX_COMPILER})
    list(APPEND found chosen)
    set(COHORT_MPIRUN_chosen ${COHORT_MPIRUN} CACHE STRING "How programs of MPI_CXX_COMPILER's library are started")
  else()
    foreach(flavour IN ITEMS openmpi mpich)
      find_program(COHORT_MPICXX_${flavour} mpicxx.${flavour})
      find_program(COHORT_MPIRUN_PROGRAM_${flavour} mpirun.${flavour})
      mark_as_advanced(COHORT_MPICXX_${flavour} COHORT_MPIRUN_PROGRAM_${flavour})
      if(NOT COHORT_MPICXX_${flavour} OR NOT COHORT_MPIRUN_PROGRAM_${flavour})
        continue()
      endif()
      cohort_add_mpi(${flavour} ${COHORT_MPICXX_${flavour}})
      list(APPEND found ${flavour})
      set(command ${COHORT_MPIRUN_PROGRAM_${flavour}})
      if(flavour STREQUAL "openmpi")
        list(APPEND command --allow-run-as-root --oversubscribe)
      endif()
      set(COHORT_MPIRUN_${flavour} ${command} CACHE INTERNAL "")
    endforeach()
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()
