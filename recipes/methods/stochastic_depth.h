#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Stochastic depth (Huang et al., ECCV 2016): in training, residual branches are dropped at
/// random. The drop rates of the blocks are those of Composer's StochasticDepth: with `linear`,
/// block i of n, counted from 1, is dropped with probability drop_rate * i / n; with `uniform`,
/// each block is dropped with probability drop_rate. Dropping works as in
/// torchvision.ops.stochastic_depth: with `block`, a branch is dropped for all samples of the batch
/// (torchvision's mode "batch"), with `sample` for each sample separately (mode "row"). A branch
/// that is not dropped is divided by 1 minus its drop rate; Composer instead multiplies by this
/// number in evaluation. Sets model.params.stochastic_depth; the model implements it, or rejects
/// the options.
/// Options: drop_rate, in [0, 1), default 0.2; mode, `block` (default) or `sample`; distribution,
/// `linear` (default) or `uniform`.
/// Cost: one multiplication of each branch. A dropped branch is still computed, so that steps can
/// be replayed as CUDA graphs and all ranks have all gradients: no time is saved.
[[nodiscard]] std::unique_ptr<Method> make_stochastic_depth();

}  // namespace precast::recipes
