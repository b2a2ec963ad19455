# SPDX-License-Identifier: BSL-1.0
# What this project's own programs are compiled with: warnings, sanitizers, ccache. Only targets that link
# `cohort_developer` privately get it; a consumer of cohort::cohort never does.

# Sources are listed by folder, so that a new file needs no edit here; a folder may be absent.
function(cohort_glob result)
  file(GLOB found CONFIGURE_DEPENDS ${ARGN})
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(cohort_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion)

add_library(cohort_developer INTERFACE)
target_link_libraries(cohort_developer INTERFACE cohort::cohort)
target_compile_options(cohort_developer INTERFACE ${cohort_warnings})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ would collect its garbage several times a file, a tenth of its time, to save 200 MB of memory.
  target_compile_options(cohort_developer INTERFACE "SHELL:--param ggc-min-heapsize=1000000")
endif()

if(COHORT_SANITIZE)
  list(JOIN COHORT_SANITIZE "," cohort_sanitizers)
  # A finding must end the program: a report that scrolls by fails no test.
  set(cohort_sanitize_flags -fsanitize=${cohort_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if("undefined" IN_LIST COHORT_SANITIZE)
    # A trap, whose place AddressSanitizer prints (handle_sigill, in the test preset): the texts that tell a finding in
    # words are twice the code, and a third of the time that it takes to compile. What is off cannot trap (vptr), is
    # found by AddressSanitizer as well (null), or finds nothing at -O0 (object-size).
    list(APPEND cohort_sanitize_flags -fno-sanitize=vptr,null,object-size -fsanitize-undefined-trap-on-error)
  endif()
  target_compile_options(cohort_developer INTERFACE ${cohort_sanitize_flags})
  target_link_options(cohort_developer INTERFACE ${cohort_sanitize_flags})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    if("thread" IN_LIST COHORT_SANITIZE)
      # g++ warns at each atomic_thread_fence, Boost's included, that TSan does not see it.
      target_compile_options(cohort_developer INTERFACE -Wno-tsan)
    elseif("address" IN_LIST COHORT_SANITIZE)
      # A call for each access instead of the check itself: less to compile, by a fifth.
      target_compile_options(cohort_developer INTERFACE "SHELL:--param asan-instrumentation-with-call-threshold=0")
    endif()
  endif()
endif()

if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(COHORT_CCACHE ccache)
  mark_as_advanced(COHORT_CCACHE)
  if(COHORT_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${COHORT_CCACHE})
  endif()
endif()

# Whose speed no test looks at need not be fast: half of what these take to compile is optimisation.
option(COHORT_QUICK_BUILD "The cohort program and benchmarks without optimisation" OFF)
set(cohort_unmeasured "")
if(COHORT_QUICK_BUILD)
  set(cohort_unmeasured -O0)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)

# Most programs here take the bodies that are no templates from one library (include/cohort/src.hpp): they compile several
# times faster. What must be shown to work header-only links cohort_developer alone.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/cohort_bodies.cpp @ONLY
     CONTENT "// SPDX-License-Identifier: BSL-1.0\n#include <cohort/src.hpp>\n")
add_library(cohort_bodies STATIC ${PROJECT_BINARY_DIR}/cohort_bodies.cpp)
target_link_libraries(cohort_bodies PRIVATE cohort_developer)
target_compile_definitions(cohort_bodies PUBLIC COHORT_SEPARATE_COMPILATION)
if(COHORT_WITH_TLS)
  target_link_libraries(cohort_bodies PUBLIC cohort::tls)
endif()

add_library(cohort_developer_once INTERFACE)
target_link_libraries(cohort_developer_once INTERFACE cohort_developer cohort_bodies)
