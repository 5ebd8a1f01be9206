# Debian's xxhash has a header and a library, but no CMake package.
find_path(XXHASH_INCLUDE_DIR xxhash.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(XXHASH REQUIRED_VARS XXHASH_INCLUDE_DIR)
if(XXHASH_FOUND AND NOT TARGET XXHASH::xxhash)
  add_library(XXHASH::xxhash INTERFACE IMPORTED)
  target_include_directories(XXHASH::xxhash INTERFACE ${XXHASH_INCLUDE_DIR})
  target_compile_definitions(XXHASH::xxhash INTERFACE XXH_INLINE_ALL)
endif()
