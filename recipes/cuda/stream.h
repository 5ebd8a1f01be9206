#pragma once

// As cuda_runtime_api.h declares it. So the kernels' interfaces need no header of CUDA, and the
// code that calls them is compiled in every build.
struct CUstream_st;
using cudaStream_t = CUstream_st*;
