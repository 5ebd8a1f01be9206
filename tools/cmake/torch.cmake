# precast_torch: libtorch as one target, with or without CUDA.
#
# With CUDA, find_package(Torch) finds the toolkit and adds its definitions. It needs nvcc, and TORCH_CUDA_ARCH_LIST
# because its own detection of GPUs fails under CMake 3.25. Without CUDA, find_package(Torch) must not be called,
# because it would require nvcc; libtorch_cpu and libc10 are then linked directly.
if(NOT PRECAST_TORCH_DIR)
  set(python ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  if(NOT EXISTS ${python})
    message(FATAL_ERROR "libtorch: expected ${python}, got none. Run ./tools/setup first, or pass -DPRECAST_TORCH_DIR=<libtorch>.")
  endif()
  execute_process(COMMAND ${python} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "libtorch: expected the wheel 'torch' to be installed for ${python}, got none. Run ./tools/setup.")
  endif()
  set(PRECAST_TORCH_DIR ${torch_dir} CACHE PATH "" FORCE)
endif()
message(STATUS "libtorch: ${PRECAST_TORCH_DIR}")

find_program(PRECAST_NVCC nvcc HINTS /usr/local/cuda/bin)
if(PRECAST_CUDA STREQUAL "AUTO")
  if(PRECAST_NVCC AND EXISTS ${PRECAST_TORCH_DIR}/lib/libtorch_cuda.so)
    set(precast_cuda ON)
  else()
    set(precast_cuda OFF)
  endif()
else()
  set(precast_cuda ${PRECAST_CUDA})
endif()
if(precast_cuda AND NOT PRECAST_NVCC)
  message(FATAL_ERROR "PRECAST_CUDA=ON: expected nvcc on PATH or in /usr/local/cuda/bin, got none. Install the CUDA toolkit, or use -DPRECAST_CUDA=OFF")
endif()
set(PRECAST_WITH_CUDA ${precast_cuda})
message(STATUS "CUDA: ${PRECAST_WITH_CUDA}")

# stdc++ comes before libtorch: the wheel's libraries export part of another compiler's std::filesystem, whose
# remove_all() crashes. The first library that defines a symbol is used.
add_library(precast_torch INTERFACE)
set_target_properties(precast_torch PROPERTIES EXPORT_NAME torch)
# The header of all operators is large; with AT_PER_OPERATOR_HEADERS, a source includes only the operators that it uses.
# libtorch's include folder contains a newer fmt, which hides Debian's. The newer fmt has no library, so FMT_HEADER_ONLY
# is set.
target_compile_definitions(precast_torch INTERFACE AT_PER_OPERATOR_HEADERS FMT_HEADER_ONLY)
if(PRECAST_WITH_CUDA)
  if(NOT DEFINED TORCH_CUDA_ARCH_LIST)
    set(TORCH_CUDA_ARCH_LIST "8.0;9.0;10.0+PTX")
  endif()
  set(CMAKE_CUDA_COMPILER ${PRECAST_NVCC})
  set(Torch_DIR ${PRECAST_TORCH_DIR}/share/cmake/Torch)
  find_package(Torch REQUIRED)
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc supports C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  target_link_libraries(precast_torch INTERFACE stdc++ ${TORCH_LIBRARIES})
else()
  # For other projects, precastConfig.cmake sets these properties.
  target_include_directories(precast_torch SYSTEM INTERFACE
    $<BUILD_INTERFACE:${PRECAST_TORCH_DIR}/include>
    $<BUILD_INTERFACE:${PRECAST_TORCH_DIR}/include/torch/csrc/api/include>)
  target_link_libraries(precast_torch INTERFACE stdc++
    ${PRECAST_TORCH_DIR}/lib/libtorch_cpu.so ${PRECAST_TORCH_DIR}/lib/libc10.so)
endif()

# Installed programs load libtorch (and CUDA) from the folder that the build used.
list(APPEND CMAKE_INSTALL_RPATH ${PRECAST_TORCH_DIR}/lib)
if(PRECAST_WITH_CUDA)
  list(APPEND CMAKE_INSTALL_RPATH ${CUDAToolkit_LIBRARY_DIR})
endif()
