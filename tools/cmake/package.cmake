# Makes find_package(precast) work for plug-ins and for users of precast::data, with an installed tree or with this
# build folder.
include(CMakePackageConfigHelpers)
get_property(headers GLOBAL PROPERTY PRECAST_HEADERS)
# The paths are relative to include/precast in an installation, and to the source tree in a build folder.
list(TRANSFORM headers REPLACE "^${PROJECT_SOURCE_DIR}/" "" OUTPUT_VARIABLE names)
list(JOIN names "\n" text)
set(header_list ${CMAKE_BINARY_DIR}/public_headers.txt)
file(CONFIGURE OUTPUT ${header_list} CONTENT "${text}\n" @ONLY)
set(abi_header ${CMAKE_BINARY_DIR}/generated/precast_abi.h)
add_custom_command(OUTPUT ${abi_header}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DHEADERS=${header_list} -DVERSION=${PROJECT_VERSION}
    -DOUT=${abi_header} -P ${CMAKE_CURRENT_LIST_DIR}/write_abi.cmake
  DEPENDS ${headers} ${header_list} ${CMAKE_CURRENT_LIST_DIR}/write_abi.cmake
  COMMENT "Computing the digest of the public headers" VERBATIM)
add_custom_target(precast_abi DEPENDS ${abi_header})
add_dependencies(precast_plugins precast_abi)

install(TARGETS precast_options EXPORT precastTargets)
if(PRECAST_TORCH)
  install(TARGETS precast_torch EXPORT precastTargets)
endif()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/precast)
install(EXPORT precastTargets NAMESPACE precast:: DESTINATION ${package_folder})
export(EXPORT precastTargets NAMESPACE precast:: FILE ${CMAKE_BINARY_DIR}/precastTargets.cmake)

# Called twice, because a build folder and an installation have the programs and the headers in different folders.
function(precast_config out folder header_root bin)
  configure_package_config_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precastConfig.cmake.in ${out}
    INSTALL_DESTINATION ${folder} INSTALL_PREFIX ${ARGN} PATH_VARS header_root bin)
endfunction()
precast_config(${CMAKE_BINARY_DIR}/precastConfig.cmake ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR} bin ${CMAKE_BINARY_DIR})
precast_config(${CMAKE_BINARY_DIR}/installed/precastConfig.cmake ${package_folder} include/precast
  ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_PREFIX})
foreach(script precast_add_plugin.cmake write_abi.cmake)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${script} ${CMAKE_BINARY_DIR}/${script} COPYONLY)
endforeach()
write_basic_package_version_file(precastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/installed/precastConfig.cmake ${CMAKE_BINARY_DIR}/precastConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/precast_add_plugin.cmake ${CMAKE_CURRENT_LIST_DIR}/write_abi.cmake ${header_list}
  DESTINATION ${package_folder})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/precast)
