#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Selective backprop (Jiang et al. 2019), like Composer's SelectiveBackprop: between the fractions
/// `start` and `end` of a run, a forward pass computes the loss of each sample, and the step uses
/// the fraction `keep` of the batch, drawn at random without replacement. If the samples are sorted
/// by ascending loss, the i-th of n samples, counted from 0, is drawn with the weight ((i + 0.5) /
/// n) ^ (1 / keep - 1). Every `interrupt`-th step of an epoch trains on the whole batch. As in
/// Composer, the forward pass for the selection updates the running statistics, and the reported
/// loss is the loss of the selected samples. Draws are a function of seed, step and rank.
/// Options: start, end, fractions of the run, default 0.5 and 0.9; keep, in (0, 1], default 0.5 (1:
/// plain steps; n * keep is rounded down, but at least 1); interrupt, default 2 (0: every step
/// selects); scale_factor, in (0, 1], default 1: side of the images used for selection, as a
/// fraction of the full side (bilinear resizing), for every input that is an image.
/// configure() throws ConfigError with micro-batches, for start > end, and for scale_factor < 1
/// with masks, which would no longer have the size of the outputs.
/// Cost: an additional forward pass in each step that selects samples; saves the fraction 1 - keep
/// of the step's usual forward and backward pass.
[[nodiscard]] std::unique_ptr<Method> make_selective_backprop();

}  // namespace precast::recipes
