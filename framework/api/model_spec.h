#pragma once

#include <cstdint>
#include <string>

#include "framework/api/target_kind.h"
#include "framework/core/config/node.h"

namespace precast {

class Communicator;

/// The parameters from which a model is built. Methods such as BlurPool edit them before the model
/// exists. Torch-free.
struct ModelSpec {
  /// Registered name: "resnet18".
  std::string arch = "resnet18";
  /// Number of outputs per sample (or per pixel, for masks): one for each class, or for each number
  /// to predict.
  std::int64_t num_classes = 1000;
  /// Number of channels of the images: 3, or 1 for greyscale.
  std::int64_t in_channels = 3;
  /// The kind of target that the outputs are compared with.
  TargetKind targets = TargetKind::class_index;
  /// Whether to antialias every strided convolution with at least 16 input channels (Zhang, ICML
  /// 2019; as in ffcv-imagenet).
  bool blurpool = false;
  /// The ranks over which batch norms compute their training statistics; null if each rank computes
  /// its own. Borrowed; must outlive the model.
  Communicator* batch_norm_ranks = nullptr;
  /// The largest number of samples that share the statistics of a batch norm in training (Hoffer et
  /// al., NeurIPS 2017); 0 for the whole batch. Cannot be combined with batch_norm_ranks.
  std::int64_t ghost_batch_size = 0;
  /// Whether blocks may replace sequences of ops with fused ops where the device supports them.
  /// Weights and names stay the same; results differ by rounding.
  bool fused_kernels = false;
  /// The recipe's `model.params`: options of this architecture.
  ConfigNode params{};
};

}  // namespace precast
