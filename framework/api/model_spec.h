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
  /// Number of outputs per sample, or per pixel: one for each class or number.
  std::int64_t num_classes = 1000;
  /// Number of channels of the images: 3, or 1 for greyscale.
  std::int64_t in_channels = 3;
  /// What the outputs are compared with.
  TargetKind targets = TargetKind::class_index;
  /// Whether to antialias every strided convolution with at least 16 input channels (Zhang, ICML
  /// 2019; as in ffcv-imagenet).
  bool blurpool = false;
  /// The ranks over which batch norms compute their training statistics; null: each rank computes
  /// its own. Borrowed; outlives the model.
  Communicator* batch_norm_ranks = nullptr;
  /// The largest number of samples that share the statistics of a batch norm in training (Hoffer et
  /// al., NeurIPS 2017); 0: the whole batch. Not together with batch_norm_ranks.
  std::int64_t ghost_batch_size = 0;
  /// The recipe's `model.params`: options of this architecture.
  ConfigNode params{};
};

}  // namespace precast
