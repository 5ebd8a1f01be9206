# precast_options: the include folder and the language version of every target.
add_library(precast_options INTERFACE)
target_include_directories(precast_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/precast>)
target_compile_features(precast_options INTERFACE cxx_std_20)

# Builds with sanitizers turn off warnings: they use clang, which would also warn about libstdc++ 12's std::stable_sort.
# -Wno-maybe-uninitialized: gcc 12 wrongly reports std::string members of temporaries as uninitialised (GCC bug 105562).
add_library(precast_warnings INTERFACE)
if(PRECAST_SANITIZE)
  target_compile_options(precast_warnings INTERFACE -w)
else()
  target_compile_options(precast_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
    -Wold-style-cast -Wcast-qual -Woverloaded-virtual>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>
    $<$<AND:$<BOOL:${PRECAST_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>)
endif()
