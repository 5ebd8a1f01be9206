// The convolutions of ResNet-50 at 224 px, except the stem, and the patterns to measure for each.
#pragma once

#include <array>

#include "convolutions.h"

namespace cudnn_graphs {

struct Layer {
  Convolution shape;
  /// How often it occurs in the network.
  int count;
  /// How often its input comes from another convolution of the same block, through a batch norm and
  /// a ReLU that can be fused with it.
  int inner;
};

/// Ordered from the largest feature maps to the smallest.
constexpr std::array kLayers = {
    Layer{{64, 64, 1, 1, 56}, 1, 0},     Layer{{256, 64, 1, 1, 56}, 2, 0},
    Layer{{64, 64, 3, 1, 56}, 3, 3},     Layer{{64, 256, 1, 1, 56}, 4, 3},  // 1 projection
    Layer{{256, 128, 1, 1, 56}, 1, 0},   Layer{{128, 128, 3, 2, 56}, 1, 1},
    Layer{{256, 512, 1, 2, 56}, 1, 0},   Layer{{128, 512, 1, 1, 28}, 4, 4},
    Layer{{512, 128, 1, 1, 28}, 3, 0},   Layer{{128, 128, 3, 1, 28}, 3, 3},
    Layer{{512, 256, 1, 1, 28}, 1, 0},   Layer{{256, 256, 3, 2, 28}, 1, 1},
    Layer{{512, 1024, 1, 2, 28}, 1, 0},  Layer{{256, 1024, 1, 1, 14}, 6, 6},
    Layer{{1024, 256, 1, 1, 14}, 5, 0},  Layer{{256, 256, 3, 1, 14}, 5, 5},
    Layer{{1024, 512, 1, 1, 14}, 1, 0},  Layer{{512, 512, 3, 2, 14}, 1, 1},
    Layer{{1024, 2048, 1, 2, 14}, 1, 0}, Layer{{512, 2048, 1, 1, 7}, 3, 3},
    Layer{{2048, 512, 1, 1, 7}, 2, 0},   Layer{{512, 512, 3, 1, 7}, 2, 2},
};

struct Pattern {
  const char* title;
  /// Its name in JSON.
  const char* name;
  /// Whether it applies only to the convolutions counted by Layer::inner.
  bool inner_only;
  /// Whether tensors between the graph's operations are float32, not fp16. cuDNN accepts each fused
  /// graph with only one of the two types.
  bool intermediate_is_float;
  void (*build)(Net&, const Convolution&);
};

constexpr std::array kPatterns = {
    Pattern{"forward", "forward", false, true,
            [](Net& net, const Convolution& of) { forward(net, of, false, false); }},
    Pattern{"+genstats", "forward_genstats", false, true,
            [](Net& net, const Convolution& of) { forward(net, of, false, true); }},
    Pattern{"SBR+genstats", "scale_bias_relu_forward_genstats", true, true,
            [](Net& net, const Convolution& of) { forward(net, of, true, true); }},
    Pattern{"dgrad", "dgrad", false, true,
            [](Net& net, const Convolution& of) { data_gradient(net, of, false); }},
    Pattern{"fused dgrad", "dgrad_drelu_dbn_weight", true, true,
            [](Net& net, const Convolution& of) { data_gradient(net, of, true); }},
    Pattern{"wgrad", "wgrad", false, true,
            [](Net& net, const Convolution& of) { weight_gradient(net, of, false); }},
    Pattern{"fused wgrad", "scale_bias_relu_wgrad", true, false,
            [](Net& net, const Convolution& of) { weight_gradient(net, of, true); }},
};

}  // namespace cudnn_graphs
