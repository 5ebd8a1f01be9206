#pragma once

#include <memory>

#include "framework/api/method.h"

namespace precast::recipes {

/// Label smoothing: the target is 1 - s for the class, plus s spread evenly over all classes
/// (Szegedy et al., CVPR 2016). Sets the loss's option `label_smoothing`.
/// Options: smoothing, in [0, 1); default 0.1, like ffcv-imagenet's training.label_smoothing.
/// configure() throws ConfigError if the recipe sets loss.label_smoothing to another value.
/// Cost: negligible.
[[nodiscard]] std::unique_ptr<Method> make_label_smoothing();

}  // namespace precast::recipes
