#pragma once

// Functions with which kernels read and write float32, float16 and bfloat16. For .cu files only.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "framework/core/cuda_kernel.h"
#include "framework/core/float_type.h"

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
/// Rounds to nearest, ties to even.
__device__ __forceinline__ void round_to(float value, float& out) {
  out = value;
}
__device__ __forceinline__ void round_to(float value, __half& out) {
  out = __float2half_rn(value);
}
__device__ __forceinline__ void round_to(float value, __nv_bfloat16& out) {
  out = __float2bfloat16_rn(value);
}

/// Whether round_to() gives a positive result for `value`. One comparison is enough: half of the
/// smallest positive T is the largest value that is rounded to 0 (ties to even).
template <typename T>
__device__ __forceinline__ bool rounds_above_0(float value);
template <>
__device__ __forceinline__ bool rounds_above_0<float>(float value) {
  return value > 0;
}
template <>
__device__ __forceinline__ bool rounds_above_0<__half>(float value) {
  return value > 0x1p-25F;
}
template <>
__device__ __forceinline__ bool rounds_above_0<__nv_bfloat16>(float value) {
  return value > 0x1p-134F;
}

/// V adjacent values that a thread reads or writes in one access of up to 16 bytes.
template <typename T, int V>
struct alignas(V * sizeof(T)) Pack {
  T values[V];
};

/// Calls run.operator()<T, V>(T{}), where T is the C++ type for `type`, and V is pack_of(type,
/// count).
template <typename Run>
void for_pack(FloatType type, int count, Run run) {
  const auto of_type = [&]<typename T>(T zero) {
    constexpr int kPack = 16 / sizeof(T);
    if (count % kPack == 0) return run.template operator()<T, kPack>(zero);
    run.template operator()<T, 1>(zero);
  };
  switch (type) {
    case FloatType::f32:
      return of_type(float{});
    case FloatType::f16:
      return of_type(__half{});
    case FloatType::bf16:
      return of_type(__nv_bfloat16{});
  }
}

}  // namespace precast
