#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "framework/api/model.h"
#include "framework/api/model_spec.h"
#include "framework/core/config/schema.h"
#include "framework/core/export.h"

namespace precast::models {

/// The parameters that distinguish the residual networks.
struct ResNetShape {
  /// Whether blocks consist of 1x1, 3x3 and 1x1 convolutions instead of two 3x3 convolutions.
  bool bottleneck = false;
  /// Number of blocks in each of the four stages.
  std::array<std::int64_t, 4> blocks{};
  /// Number of groups of a bottleneck's 3x3 convolution, and channels per group in the first stage.
  std::int64_t groups = 1;
  std::int64_t width_per_group = 64;
};

/// model.params of the residual networks. Normally, the method bce_loss sets log_bias, and the
/// methods of the same names set the others.
struct PRECAST_API ResNetOptions {
  /// The weights of the last norm of each block start at 0, so that the block starts as the
  /// identity (Goyal et al., 2017).
  bool zero_init_residual = false;
  /// The biases of the last layer start at -log(num_classes) (Composer's LINEAR_LOG_CONSTANT_BIAS).
  bool log_bias = false;
  /// Adds squeeze-and-excitation (detail/squeeze_excite.h) to every convolution with at least
  /// min_channels input and output channels, as its submodule `se`. If latent_channels is 0, none
  /// is added.
  struct {
    double latent_channels = 0;
    std::int64_t min_channels = 128;
  } squeeze_excite;
  /// Drops residual branches (detail/stochastic_depth.h).
  struct {
    double drop_rate = 0;
    std::string mode = "block";
    std::string distribution = "linear";
  } stochastic_depth;

  void options(Schema& schema);
  /// Whether an option changes the network in evaluation. Other options act only in initialisation
  /// or in training, so weights that were trained with different values can be loaded.
  /// @param name without `model.params.`
  [[nodiscard]] static bool affects_evaluation(std::string_view name);
};

/// A residual network (He et al., CVPR 2016) for images [N, in_channels, H, W], H and W of at least
/// 1 px.
///
/// Names, order and initial weights of the parameters are those of torchvision.models 0.26
/// (torchvision/models/resnet.py). Bottlenecks put the stride on the 3x3 convolution ("v1.5"); wide
/// bottlenecks are from Zagoruyko & Komodakis (BMVC 2016), grouped ones from Xie et al. (CVPR
/// 2017).
/// @throws ConfigError for `num_classes` or `in_channels` below 1.
[[nodiscard]] PRECAST_API std::unique_ptr<Model> make_resnet(const ResNetShape& shape,
                                                             const ModelSpec& spec,
                                                             const ResNetOptions& options);

}  // namespace precast::models
