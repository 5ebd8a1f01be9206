#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Squeeze-and-excitation (Hu et al., CVPR 2018), like Composer's SqueezeExcite: the output of
/// every convolution with at least `min_channels` input and output channels is multiplied, channel
/// by channel, by numbers in (0, 1) that two linear layers without bias compute from the means of
/// all channels. Sets model.params.squeeze_excite; the model implements it, or rejects the options.
/// Options: latent_channels, width of the hidden layer: a number of channels if 1 or more, a
/// fraction of the convolution's output channels if below 1; default 64. min_channels, default 128.
/// Cost per convolution: 2 * channels * latent_channels weights, and one read and write of the
/// output.
[[nodiscard]] std::unique_ptr<Method> make_squeeze_excite();

}  // namespace precast::recipes
