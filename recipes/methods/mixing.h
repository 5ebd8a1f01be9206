#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/core/rng.h"

namespace precast::recipes {

/// What methods that mix samples have in common. @{

/// A draw of Beta(alpha, alpha), alpha > 0: a ratio of gammas (Marsaglia and Tsang, "A simple
/// method for generating gamma variables", ACM TOMS 26, 2000).
[[nodiscard]] PRECAST_API double random_beta(RandomStream& random, double alpha);

/// Class indices [N] as probabilities [N, classes] float32; probabilities stay as they are.
[[nodiscard]] at::Tensor class_probabilities(const at::Tensor& labels, std::int64_t classes);

/// Row i holds row i - 1, the first one the last: each sample's partner, as FFCV and torchvision
/// choose it. Keeps the memory format.
[[nodiscard]] at::Tensor partners(const at::Tensor& rows);
/// @}

}  // namespace precast::recipes
