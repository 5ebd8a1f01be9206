#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// BlurPool: each channel is blurred with [1,2,1] x [1,2,1] / 16 before every convolution with a
/// stride above 1 and at least 16 input channels (Zhang, ICML 2019; the form of ffcv-imagenet's
/// train_imagenet.py). Sets ModelSpec::blurpool, which convolutions of type
/// models::detail::BlurConv2d implement.
/// Options: none.
/// Cost: one depthwise 3x3 convolution for each such layer; ffcv-imagenet always trains with it.
[[nodiscard]] std::unique_ptr<Method> make_blurpool();

}  // namespace precast::recipes
