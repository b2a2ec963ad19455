# SPDX-License-Identifier: BSL-1.0
# A header compiles alone when it does after nothing but headers that it includes itself, before all else that is in it.
# So one file can show it for several: for a, b and c, when b includes a, and c includes b. That takes a third of the time
# that a file for each of them takes.

# What CMake knows of the headers has to be what is in them.
function(cohort_read_includes)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  foreach(path IN LISTS ARGN)
    string(REGEX REPLACE "^.*/include/" "" header ${path})
    file(READ ${path} text)
    string(REPLACE ";" "," text "${text}")
    # Comments and includes up to the first line that is anything else: these come first, and under no condition.
    string(REGEX MATCH "^(//[^\n]*\n|#pragma once[^\n]*\n|#include [^\n]*\n|\n)*" top "${text}")
    foreach(part IN ITEMS top text)
      string(REGEX MATCHALL "#include <cohort/[^>]+>" includes "${${part}}")
      list(TRANSFORM includes REPLACE "#include <(.*)>" "\\1")
      set(${part}_includes_of_${header} "${includes}" PARENT_SCOPE)
    endforeach()
  endforeach()
endfunction()

# cohort_reach(RESULT KIND HEADER): all that HEADER includes, directly or not; KIND: top (at the top alone) or text
function(cohort_reach result kind header)
  set(found "")
  set(next ${${kind}_includes_of_${header}})
  while(next)
    list(APPEND found ${next})
    set(after "")
    foreach(one IN LISTS next)
      list(APPEND after ${${kind}_includes_of_${one}})
    endforeach()
    list(REMOVE_DUPLICATES after)
    list(REMOVE_ITEM after ${found})
    set(next ${after})
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# cohort_header_sources(RESULT TEMPLATE NAMES PATHS): files in the current binary folder that between them include each of
# NAMES alone, in the sense above: TEMPLATE, configured for one header after the other. It may use @header@ and @core@,
# which is 0 for those that match `not_core`. PATHS: those of all headers that they may include.
function(cohort_header_sources result template names paths)
  cohort_read_includes(${paths})
  set(by_size "")
  foreach(header IN LISTS names)
    cohort_reach(top_reach_of_${header} top ${header})
    cohort_reach(text_reach_of_${header} text ${header})
    list(LENGTH top_reach_of_${header} size)
    list(APPEND by_size "${size} ${header}")
  endforeach()
  list(SORT by_size COMPARE NATURAL ORDER DESCENDING)
  list(TRANSFORM by_size REPLACE "^[0-9]+ " "")

  file(READ ${template} pattern)
  set(left ${by_size})
  set(sources "")
  while(left)
    list(POP_FRONT left last)
    set(chain ${last})
    set(first ${last})
    foreach(header IN LISTS left)  # the one that includes most comes first
      # One that comes round to the other again, as a file of bodies does, is compiled in another order alone.
      if(header IN_LIST top_reach_of_${first} AND NOT first IN_LIST text_reach_of_${header})
        list(PREPEND chain ${header})
        set(first ${header})
      endif()
    endforeach()
    list(REMOVE_ITEM left ${chain})
    set(content "")
    foreach(header IN LISTS chain)
      set(core 1)
      if(not_core AND header MATCHES "${not_core}")
        set(core 0)
      endif()
      string(CONFIGURE "${pattern}" one @ONLY)
      string(APPEND content "${one}\n")
    endforeach()
    string(MAKE_C_IDENTIFIER ${last} name)
    file(CONFIGURE OUTPUT ${name}.cpp CONTENT "${content}" @ONLY)
    list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  endwhile()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()
