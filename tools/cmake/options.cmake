set(PRECAST_CUDA "AUTO" CACHE STRING "Build the GPU parts: AUTO (if nvcc and libtorch with CUDA are found), ON or OFF")
set_property(CACHE PRECAST_CUDA PROPERTY STRINGS AUTO ON OFF)
set(PRECAST_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address;undefined' or 'thread'")
set(PRECAST_TORCH_DIR "" CACHE PATH "Folder of libtorch (the one with lib/ and include/); empty: the one in .venv")
option(PRECAST_TORCH "Build the parts that need libtorch; OFF: only the torch-free parts" ON)
option(PRECAST_TESTS "Build the tests" ON)
option(PRECAST_DATA_ONLY "Build only the data library and its C interface, for the Python wheel (data/python)" OFF)
option(PRECAST_FUZZ "Add the fuzz programs of tests/fuzz to the tests under the address sanitizer (needs clang)" OFF)
option(PRECAST_UNITY "Compile several sources as one; OFF: compile each alone, so that a change rebuilds less" ON)
option(PRECAST_PCH "Precompile the headers that most tests include (g++ only)" ON)
option(PRECAST_WERROR "Treat warnings as errors (CI)" OFF)

if(PRECAST_DATA_ONLY)
  set(PRECAST_TORCH OFF)
  set(PRECAST_TESTS OFF)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Compiling with -O3 takes a twentieth longer than with -O2, and only the loops of data/ become faster. Therefore only
# data/CMakeLists.txt sets -O3.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# Without garbage collection below 1 GB, g++ compiles a twentieth to a tenth faster and uses a quarter more memory.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param ggc-min-heapsize=1000000>")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Executables find their libraries in ../lib, wherever the tree is installed.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

# precast_unity(TARGET [SOURCES n] [ALONE FILE...]): compiles several sources as one translation unit: up to eight of
# the same folder or, with SOURCES, up to n of any folder. Most of the compile time is spent on headers, mainly
# libtorch's; a unit reads them only once. ALONE: sources that are compiled separately, because they define the same
# names as other sources, or because Highway includes them once for each instruction set. CMake's own UNITY_BUILD writes
# absolute paths into the units, so ccache could not use the results of other clones.
function(precast_unity target)
  cmake_parse_arguments(ARG "" "SOURCES" "ALONE" ${ARGN})
  if(NOT PRECAST_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(compiled ${sources})
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(REMOVE_ITEM sources ${ARG_ALONE})
  list(REMOVE_ITEM compiled ${sources})
  set(units "")
  foreach(source IN LISTS sources)
    # Without SOURCES, a unit has sources of one folder only. A new source then changes only the units of that folder.
    set(folder any)
    set(most ${ARG_SOURCES})
    if(NOT ARG_SOURCES)
      get_filename_component(folder "${source}" DIRECTORY)
      string(MAKE_C_IDENTIFIER "in_${folder}" folder)
      set(most 8)
    endif()
    list(APPEND all_${folder} "${source}")
    list(LENGTH all_${folder} count)
    math(EXPR number "(${count} - 1) / ${most}")
    list(APPEND unit_${folder}_${number} "${source}")
    list(APPEND units ${folder}_${number})
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit IN LISTS units)
    set(text "")
    foreach(source IN LISTS unit_${unit})
      get_filename_component(path "${source}" ABSOLUTE)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}_${unit}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
    list(APPEND compiled ${file})
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${compiled})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # g++ takes the included sources for headers, and warns about their anonymous namespaces.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

find_program(PRECAST_CCACHE ccache)
if(PRECAST_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PRECAST_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PRECAST_CCACHE})
endif()
