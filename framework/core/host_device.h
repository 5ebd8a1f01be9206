#pragma once

/// For constexpr functions that both the host and CUDA kernels call. Write it before the return
/// type.
#ifdef __CUDACC__
#define PRECAST_HOST_DEVICE __host__ __device__
#else
#define PRECAST_HOST_DEVICE
#endif
