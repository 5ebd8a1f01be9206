#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Progressive resizing of batches that are on the device already (Howard, DAWNBench 2018), as
/// Composer's ProgressiveResizing: images start at `initial_scale` of their side, grow linearly
/// after the share `delay_fraction` of the run, step by step, and have full size in the last
/// `finetune_fraction`; sides are multiples of `size_increment`, half to even. `progressive_resize`
/// makes the loader deliver small images and so saves decoding too; this method is for sources of
/// fixed size and for changes within an epoch.
/// Options: mode, `resize` (default; nearest pixel, as Composer's code) or `crop` (one random place
/// for the batch, a function of seed, step and rank); initial_scale, in (0, 1], default 0.5;
/// delay_fraction, default 0.5; finetune_fraction, default 0.2, their sum at most 1;
/// size_increment, px, default 4.
/// configure() throws ConfigError for a sum above 1.
/// Cost: one read and write of the images; saves time in proportion to their area. After each size
/// change cuDNN chooses its kernels again and a CUDA graph is recorded again.
[[nodiscard]] std::unique_ptr<Method> make_batch_resize();

}  // namespace precast::recipes
