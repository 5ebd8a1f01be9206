#pragma once

#include "framework/core/float_type.h"

namespace precast::models {

/// The type of activations and their gradients.
using ActivationType = FloatType;

/// Threads per block.
constexpr int kThreads = 256;

/// Number of values that a thread reads at a time in most kernels: half of pack_of(). A thread then
/// needs fewer registers for the constants and sums of its channels, so more loads are in flight.
[[nodiscard]] constexpr int half_pack(int pack) {
  return pack > 1 ? pack / 2 : 1;
}

}  // namespace precast::models
