#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Squeeze-and-excitation (Hu et al., CVPR 2018), as Composer's SqueezeExcite: after every
/// convolution with at least `min_channels` input and output channels, each channel is multiplied
/// by a number in (0, 1) that two linear layers without bias compute from the means of all
/// channels. Writes model.params.squeeze_excite; the model does the work, or rejects them. Options:
/// latent_channels, of the hidden layer: 1 or more, or below 1 a share of the channels; default 64.
/// min_channels, default 128. Cost: 2 * channels * latent_channels weights and one read and write
/// of the output, each.
[[nodiscard]] std::unique_ptr<Method> make_squeeze_excite();

}  // namespace precast::recipes
