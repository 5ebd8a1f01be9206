# find_package(precast) for plug-ins and for users of precast::data, from an installed tree or from this build folder.
include(CMakePackageConfigHelpers)
get_property(headers GLOBAL PROPERTY PRECAST_HEADERS)
list(JOIN headers "\n" text)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/public_headers.txt CONTENT "${text}\n")
set(abi_header ${CMAKE_BINARY_DIR}/generated/precast_abi.h)
add_custom_command(OUTPUT ${abi_header}
  COMMAND ${CMAKE_COMMAND} -DHEADERS=${CMAKE_BINARY_DIR}/public_headers.txt -DVERSION=${PROJECT_VERSION}
    -DOUT=${abi_header} -P ${CMAKE_CURRENT_LIST_DIR}/write_abi.cmake
  DEPENDS ${headers} ${CMAKE_BINARY_DIR}/public_headers.txt ${CMAKE_CURRENT_LIST_DIR}/write_abi.cmake
  COMMENT "Digest of the public headers" VERBATIM)
add_custom_target(precast_abi DEPENDS ${abi_header})
add_dependencies(precast_tool_support precast_abi)
install(FILES ${abi_header} DESTINATION include/precast)

install(TARGETS precast_options EXPORT precastTargets)
if(PRECAST_TORCH)
  install(TARGETS precast_torch EXPORT precastTargets)
endif()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/precast)
install(EXPORT precastTargets NAMESPACE precast:: DESTINATION ${package_folder})
export(EXPORT precastTargets NAMESPACE precast:: FILE ${CMAKE_BINARY_DIR}/precastTargets.cmake)

# Two configurations of one file: programs and the digest lie elsewhere in a build folder.
function(precast_config out folder abi_header bin)
  configure_package_config_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precastConfig.cmake.in ${out}
    INSTALL_DESTINATION ${folder} INSTALL_PREFIX ${ARGN} PATH_VARS abi_header bin)
endfunction()
precast_config(${CMAKE_BINARY_DIR}/precastConfig.cmake ${CMAKE_BINARY_DIR} generated/precast_abi.h bin ${CMAKE_BINARY_DIR})
precast_config(${CMAKE_BINARY_DIR}/installed/precastConfig.cmake ${package_folder} include/precast/precast_abi.h
  ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/precast_add_plugin.cmake ${CMAKE_BINARY_DIR}/precast_add_plugin.cmake COPYONLY)
write_basic_package_version_file(precastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/installed/precastConfig.cmake ${CMAKE_BINARY_DIR}/precastConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/precast_add_plugin.cmake DESTINATION ${package_folder})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/precast)
