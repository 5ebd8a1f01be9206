#pragma once

// What kernels need to read and write float32, float16 and bfloat16. For .cu files only.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "framework/core/cuda_kernel.h"

namespace precast {

__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
/// To nearest, ties to even.
__device__ __forceinline__ void round_to(float value, float& out) {
  out = value;
}
__device__ __forceinline__ void round_to(float value, __half& out) {
  out = __float2half_rn(value);
}
__device__ __forceinline__ void round_to(float value, __nv_bfloat16& out) {
  out = __float2bfloat16_rn(value);
}

/// What a thread reads or writes at a time, as one access of up to 16 bytes.
template <typename T, int V>
struct alignas(V * sizeof(T)) Pack {
  T values[V];
};

}  // namespace precast
