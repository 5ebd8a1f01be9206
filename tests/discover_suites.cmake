# Writes one CTest test per test suite of a GoogleTest program:
#   cmake -DPROGRAM=... -DOUT=FILE.cmake -DLABEL=unit -DREPORTS=FOLDER -P discover_suites.cmake
# gtest_discover_tests() would register each GoogleTest test. Each of them would start the program, and loading libtorch
# takes half a second.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listing COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listing}")
set(tests "")
foreach(line IN LISTS lines)
  if(line MATCHES "^([^ ]+\\.)")
    set(suite ${CMAKE_MATCH_1})
    string(REGEX REPLACE "\\.$" "" name ${suite})
    string(REPLACE "/" "-" file ${name})
    string(APPEND tests "add_test([=[${name}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}*]=] "
      "[=[--gtest_output=xml:${REPORTS}/${file}.xml]=])\n"
      "set_tests_properties([=[${name}]=] PROPERTIES LABELS ${LABEL})\n")
  endif()
endforeach()
file(WRITE ${OUT} "${tests}")
