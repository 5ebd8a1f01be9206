#pragma once

// The same declaration as in cuda_runtime_api.h. With it, the interfaces of the kernels need no
// CUDA header, and the code that calls them is compiled in every build.
struct CUstream_st;
using cudaStream_t = CUstream_st*;
