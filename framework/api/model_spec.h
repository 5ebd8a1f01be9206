#pragma once

#include <cstdint>
#include <string>

#include "framework/api/target_kind.h"
#include "framework/core/config/node.h"

namespace precast {

class Communicator;

/// What a model is built from. Methods edit it before the model exists (BlurPool does). Torch-free.
struct ModelSpec {
  /// Registered name: "resnet18".
  std::string arch = "resnet18";
  /// Outputs of a sample, or of a pixel: classes, or numbers.
  std::int64_t num_classes = 1000;
  /// Channels of the images: 3, or 1 for grey ones.
  std::int64_t in_channels = 3;
  /// What the outputs are compared with.
  TargetKind targets = TargetKind::class_index;
  /// Antialias every strided convolution with at least 16 input channels (Zhang, ICML 2019; as
  /// ffcv-imagenet).
  bool blurpool = false;
  /// Training statistics of batch norms are taken over these ranks; null: each rank's own.
  /// Borrowed; outlives the model.
  Communicator* batch_norm_ranks = nullptr;
  /// The recipe's `model.params`: options of this architecture.
  ConfigNode params{};
};

}  // namespace precast
