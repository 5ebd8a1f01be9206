#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Ghost batch normalisation (Hoffer et al., NeurIPS 2017), like Composer's GhostBatchNorm: in
/// training, batch norms split the N samples of each rank and micro-batch with at::chunk() into at
/// most ceil(N / size) chunks, of which the last may be smaller, and normalise each chunk with its
/// own statistics. Each of n chunks updates the running statistics with momentum / n. Evaluation,
/// names and shapes are the same as for plain batch norm, so weights can be exchanged with models
/// that do not use this method. Sets ModelSpec::ghost_batch_size, which norms of type
/// models::detail::BatchNorm2d implement. It cannot be combined with dist.sync_bn on several ranks,
/// and `size` must be at most the number of samples of a micro-batch on one rank.
/// Options: size, in samples, 1 or more; default 32.
/// Cost: a copy of the output of each batch norm, and one kernel call per chunk instead of one.
[[nodiscard]] std::unique_ptr<Method> make_ghost_batch_norm();

}  // namespace precast::recipes
