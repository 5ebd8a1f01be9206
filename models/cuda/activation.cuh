#pragma once

// What the kernels of this folder share. For .cu files only.

#include "framework/core/cuda_values.cuh"
#include "models/cuda/activation.h"

namespace precast::models {

/// Threads of a block.
constexpr int kThreads = 256;

/// Calls run(T{}, constant V) for a type and pack_of(type, channels).
template <typename Run>
void for_pack(ActivationType type, int channels, Run run) {
  const auto of_type = [&]<typename T>(T zero) {
    constexpr int kPack = 16 / sizeof(T);
    if (channels % kPack == 0) return run.template operator()<T, kPack>(zero);
    run.template operator()<T, 1>(zero);
  };
  switch (type) {
    case ActivationType::f32:
      return of_type(float{});
    case ActivationType::f16:
      return of_type(__half{});
    case ActivationType::bf16:
      return of_type(__nv_bfloat16{});
  }
}

}  // namespace precast::models
