#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/core/export.h"

namespace precast {
class Model;
}  // namespace precast

namespace precast::models {

/// A convolution's name in state() and its number of input channels: {"layer2.0.conv1", 64}.
using BlurredLayers = std::map<std::string, std::int64_t>;

/// A model that can list the convolutions that BlurPool blurs, as models from as_model() can. A
/// weights file records them, because the names and shapes of the weights do not show which layers
/// blur.
class PRECAST_API HasBlurredLayers {
 public:
  virtual ~HasBlurredLayers();
  [[nodiscard]] virtual BlurredLayers blurred_layers() const = 0;
};

/// Returns the blurred layers of `model`; empty if it is not a HasBlurredLayers.
[[nodiscard]] PRECAST_API BlurredLayers blurred_layers(const Model& model);

}  // namespace precast::models
