include(GNUInstallDirs)

# precast_library(NAME SOURCES ... HEADERS ... [LINK ...] [PRIVATE_LINK ...] [ALONE ...] [CALLS_TORCH])
# Adds a shared library precast_NAME with the alias precast::NAME. HEADERS are installed, and each is checked to compile
# on its own (target all_verify_interface_header_sets). ALONE: see precast_unity(). CALLS_TORCH: for code that leaves
# the computing to libtorch's kernels. It is compiled with -O1: compilation is a sixth faster than with -O2, and
# training steps take the same time.
function(precast_library name)
  cmake_parse_arguments(ARG "CALLS_TORCH" "" "SOURCES;HEADERS;LINK;PRIVATE_LINK;ALONE" ${ARGN})
  set(target precast_${name})
  add_library(${target} SHARED ${ARG_SOURCES})
  add_library(precast::${name} ALIAS ${target})
  precast_unity(${target} ALONE ${ARG_ALONE})
  if(ARG_CALLS_TORCH)
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  endif()
  foreach(header IN LISTS ARG_HEADERS)
    set_property(GLOBAL APPEND PROPERTY PRECAST_HEADERS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  endforeach()
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARG_HEADERS})
  target_link_libraries(${target} PUBLIC precast_options ${ARG_LINK} PRIVATE precast_warnings ${ARG_PRIVATE_LINK})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN;${CMAKE_INSTALL_RPATH}")
  install(TARGETS ${target} EXPORT precastTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION include/precast)
endfunction()
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# precast_part(NAME SOURCES ... [LINK ...] [PRIVATE_LINK ...] [UNITY n] [ALONE ...]): adds a static library
# precast_NAME for the programs and the tests; most folders of tools/ have one. UNITY and ALONE are passed to
# precast_unity() as SOURCES and ALONE.
function(precast_part name)
  cmake_parse_arguments(ARG "" "UNITY" "SOURCES;LINK;PRIVATE_LINK;ALONE" ${ARGN})
  add_library(precast_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(precast_${name} PUBLIC precast_options ${ARG_LINK} PRIVATE precast_warnings ${ARG_PRIVATE_LINK})
  # With optimisation, sanitizer builds would take twice as long to compile, and the tests would not be faster.
  target_compile_options(precast_${name} PRIVATE $<$<BOOL:${PRECAST_SANITIZE}>:-O0>)
  precast_unity(precast_${name} SOURCES ${ARG_UNITY} ALONE ${ARG_ALONE})
endfunction()
