#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Progressive resizing of batches that are already on the device (Howard, DAWNBench 2018), like
/// Composer's ProgressiveResizing: images start at `initial_scale` times their side, grow linearly
/// with each step after the fraction `delay_fraction` of the run, and have full size in the last
/// fraction `finetune_fraction`. The width is rounded to a multiple of `size_increment`, half to
/// even, but never to 0 or above the full width; images of full size are unchanged. The height is
/// scaled by the same factor and rounded down. The method `progressive_resize` instead makes the
/// loader deliver small images, so fewer pixels are copied to the device. `batch_resize` is for
/// sources whose images have a fixed size, and for size changes within an epoch.
/// Options: mode, `resize` (default; nearest pixel, as in Composer's code) or `crop` (one random
/// position for the whole batch, a function of seed, step and rank); initial_scale, in (0, 1],
/// default 0.5; delay_fraction, default 0.5, and finetune_fraction, default 0.2, whose sum is at
/// most 1; size_increment, px, default 4.
/// configure() throws ConfigError if the sum is above 1.
/// Cost: one read and write of the images; saves time in proportion to their area. After each
/// change of size, cuDNN chooses its kernels again and CUDA graphs are recorded again.
[[nodiscard]] std::unique_ptr<Method> make_batch_resize();

}  // namespace precast::recipes
