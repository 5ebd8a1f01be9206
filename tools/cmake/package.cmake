# find_package(precast) for plug-ins and for users of precast::data.
include(CMakePackageConfigHelpers)
install(TARGETS precast_options EXPORT precastTargets)
if(PRECAST_TORCH)
  install(TARGETS precast_torch EXPORT precastTargets)
endif()
install(EXPORT precastTargets NAMESPACE precast:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/precast)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/precastConfig.cmake.in precastConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/precast)
write_basic_package_version_file(precastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/precastConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/precastConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/precast)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${CMAKE_INSTALL_DATADIR}/precast)
