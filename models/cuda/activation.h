#pragma once

#include "framework/core/float_type.h"

namespace precast::models {

/// The type of activations and their gradients.
using ActivationType = FloatType;

/// Threads per block.
constexpr int kThreads = 256;

}  // namespace precast::models
