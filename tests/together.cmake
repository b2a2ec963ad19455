# SPDX-License-Identifier: BSL-1.0
# Sources compiled several at a time, each in a namespace of its own: what they have of the library and of the standard
# library is read, instantiated and written out once for all of them, which takes half of the time.
set(COHORT_TESTS_TOGETHER 8 CACHE STRING "How many sources of tests are compiled as one, at most")

# cohort_put_together(RESULT NAME SOURCE...): the sources to be compiled, some of them made here, in the current binary
# folder. A source stays alone when a namespace around it would make it another program: because it specialises a template,
# defines a macro, opens a namespace that has a name, or includes a source, or anything behind its first lines. So does one
# that needs much memory by itself.
function(cohort_put_together result name)
  set(alone "")
  set(left "")
  foreach(source IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
    file(READ ${source} text)
    string(REPLACE ";" "," text "${text}")
    string(REPLACE "[" "(" text "${text}")
    string(REPLACE "]" ")" text "${text}")
    string(REGEX MATCH "^(//[^\n]*\n|#include [^\n]*\n|\n)*" top "${text}")
    string(LENGTH "${top}" length)
    string(SUBSTRING "${text}" ${length} -1 rest)
    if(top MATCHES "\\.cpp\"\n|<boost/asio" OR rest MATCHES "\n#(include|define) |\ntemplate <>|(^|\n)namespace [a-z_:]+ {|(^|\n)extern \"C\"|operator new")
      list(APPEND alone ${source})
    else()
      list(APPEND left ${source})
      string(REGEX MATCHALL "#include [^\n]*" includes_of_${source} "${top}")
    endif()
  endforeach()

  set(number 0)
  list(LENGTH left count)
  while(count GREATER 1 AND COHORT_TESTS_TOGETHER GREATER 1)
    list(SUBLIST left 0 ${COHORT_TESTS_TOGETHER} group)
    list(REMOVE_ITEM left ${group})
    list(LENGTH left count)
    set(includes "")
    set(bodies "")
    foreach(source IN LISTS group)
      cmake_path(GET source PARENT_PATH folder)
      cmake_path(GET source STEM stem)
      foreach(include IN LISTS includes_of_${source})
        if(include MATCHES "#include \"(.*)\"")  # from where the source is, or else from tests/
          cmake_path(ABSOLUTE_PATH CMAKE_MATCH_1 BASE_DIRECTORY ${folder} NORMALIZE OUTPUT_VARIABLE header)
          if(EXISTS ${header})
            cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests)
            set(include "#include \"${header}\"")
          endif()
        endif()
        list(APPEND includes "${include}")
      endforeach()
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE path)
      string(APPEND bodies "namespace test_${stem} {\n#include \"${path}\"\n}\n")
    endforeach()
    list(REMOVE_DUPLICATES includes)
    list(JOIN includes "\n" includes)
    math(EXPR number "${number} + 1")
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${name}_${number}.cpp)
    file(CONFIGURE OUTPUT ${file} @ONLY CONTENT "// SPDX-License-Identifier: BSL-1.0
${includes}

${bodies}")
    list(APPEND alone ${file})
  endwhile()
  set(${result} ${alone} ${left} PARENT_SCOPE)
endfunction()
