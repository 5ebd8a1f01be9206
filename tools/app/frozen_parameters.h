#pragma once

#include <string>
#include <vector>

#include "framework/api/model.h"

namespace precast::tools {

/// Excludes parameters from training: gradients are not computed for them.
/// @param names of `training.freeze`: each is the name of a parameter, or of a module that contains
/// parameters. `layer3.1` covers `layer3.1.conv1.weight`, but not `layer3.10.conv1.weight`. The
/// name of a module may end in a dot. A tied parameter has several names; any of them freezes it.
/// @throws ConfigError if a name covers no parameter, or if no parameter is left to train.
void freeze_parameters(const Model& model, const std::vector<std::string>& names);

/// The names of the model's parameters that are not trained.
[[nodiscard]] std::vector<std::string> frozen_parameters(const Model& model);

/// Formats the names for a message, such as `62 tensors: conv1.weight, bn1.weight, bn1.bias and 59
/// more`.
[[nodiscard]] std::string frozen_text(const std::vector<std::string>& names);

}  // namespace precast::tools
