#pragma once

// The same declaration as in cuda_runtime_api.h. It is repeated here so that the kernels' headers
// need no CUDA header and code that calls the kernels compiles in every build.
struct CUstream_st;
using cudaStream_t = CUstream_st*;
