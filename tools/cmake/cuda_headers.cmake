include_guard(GLOBAL)
# precast_cuda_headers: CUDA's headers, for sources that the host compiler compiles, from a toolkit or else from the
# wheels in .venv. If neither has them, the target does not exist, and PRECAST_CUDA_INCLUDE_DIR is false.
file(GLOB wheel_folders ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/*/include)
find_program(PRECAST_NVCC nvcc HINTS /usr/local/cuda/bin)
if(PRECAST_NVCC)
  file(REAL_PATH ${PRECAST_NVCC}/../../include toolkit_folder)
endif()
find_path(PRECAST_CUDA_INCLUDE_DIR cuda_fp16.h HINTS ${toolkit_folder} ${wheel_folders} NO_DEFAULT_PATH)
if(PRECAST_CUDA_INCLUDE_DIR)
  add_library(precast_cuda_headers INTERFACE)
  target_include_directories(precast_cuda_headers SYSTEM INTERFACE ${PRECAST_CUDA_INCLUDE_DIR})
endif()
