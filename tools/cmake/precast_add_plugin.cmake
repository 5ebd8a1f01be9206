# precast_add_plugin(NAME SOURCES ... [DATA] [LINK ...])
# Builds NAME.so: a train plug-in (models, methods, losses, metrics, optimisers, schedules) or, with DATA, a torch-free
# data plug-in (crops, transforms, orders, fields, sources). One source must contain PRECAST_TRAIN_PLUGIN or
# PRECAST_DATA_PLUGIN. All other symbols are hidden, and an undefined symbol is a link error.
function(precast_add_plugin name)
  cmake_parse_arguments(ARG "DATA" "" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "precast_add_plugin: expected NAME SOURCES ... [DATA] [LINK ...], got '${name};${ARGN}'")
  endif()
  if(NOT ARG_DATA AND NOT precast_WITH_TORCH)
    message(FATAL_ERROR "precast_add_plugin: expected DATA for '${name}', because this precast was built without libtorch, which a train plug-in needs. Add DATA, or build precast with -DPRECAST_TORCH=ON")
  endif()
  # Computes the digest of the current headers, not of those that precast was built with; see framework/core/plugin.h.
  set(abi_header ${CMAKE_CURRENT_BINARY_DIR}/${name}_abi.h)
  file(STRINGS ${precast_HEADER_LIST} headers)
  list(TRANSFORM headers PREPEND ${precast_HEADER_ROOT}/)
  add_custom_command(OUTPUT ${abi_header}
    COMMAND ${CMAKE_COMMAND} -DROOT=${precast_HEADER_ROOT} -DHEADERS=${precast_HEADER_LIST} -DVERSION=${precast_VERSION}
      -DOUT=${abi_header} -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/write_abi.cmake
    DEPENDS ${headers} ${precast_HEADER_LIST} VERBATIM)
  add_library(${name} MODULE ${ARG_SOURCES} ${abi_header})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(ARG_DATA)
    target_link_libraries(${name} PRIVATE precast::data ${ARG_LINK})
  else()
    target_link_libraries(${name} PRIVATE precast::api precast::models ${ARG_LINK})
  endif()
  target_compile_options(${name} PRIVATE "SHELL:-include \"${abi_header}\"")
  if(NOT CMAKE_BUILD_TYPE)
    target_compile_options(${name} PRIVATE -O2)
  endif()
  target_link_options(${name} PRIVATE -Wl,--no-undefined)
endfunction()
