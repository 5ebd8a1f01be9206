#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Adaptive gradient clipping (Brock et al., ICML 2021), like timm's adaptive_clip_grad and like
/// Composer's GradientClipping with clipping_type="adaptive": the gradient G of each unit is
/// multiplied by min(1, threshold * max(|W|, epsilon) / |G|), where W are the unit's weights and
/// |.| is the Euclidean norm. Units are the rows W[i] of the first dimension (the output channels
/// of a convolution or a linear layer); a parameter with fewer than two dimensions is one unit. All
/// parameters are clipped, as in Composer (the paper leaves out the last linear layer); Composer
/// has no epsilon. Each rank that updates parameters computes the same factors, from the averaged
/// and unscaled gradients.
/// Options: threshold, above 0, default 0.01; epsilon, above 0, default 0.001.
/// Cost: reads each weight once, reads each gradient twice and writes it once; nothing waits for
/// the device.
[[nodiscard]] std::unique_ptr<Method> make_adaptive_gradient_clipping();

}  // namespace precast::recipes
