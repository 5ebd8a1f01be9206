// A small network in the style of ConvNeXt (Liu et al., "A ConvNet for the 2020s", CVPR 2022):
// patches, four stages of depthwise 7x7 convolutions with inverted bottlenecks, layer norms over
// channels, GELU, layer scale.
//
//   precast train RECIPE.yaml --plugins=[convnext.so] --model.arch=convnext
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>

#include "framework/api/model_spec.h"
#include "framework/api/plugin.h"
#include "models/detail/module_model.h"

namespace {

using at::Tensor;
namespace nn = torch::nn;

/// The keys of model.params.
struct Options {
  std::int64_t width = 48;
  std::int64_t depth = 1;
  std::int64_t patch = 4;

  void options(precast::Schema& schema) {
    schema.add("width", &width, "channels of the first stage; doubled at each following stage")
        .min(1);
    schema.add("depth", &depth, "blocks per stage; the third stage has three times as many").min(1);
    schema.add("patch", &patch, "side of the patches of the stem, px").min(1);
  }
};

/// Layer norm over the channels of [N, C, H, W].
struct ChannelNormImpl : nn::Module {
  explicit ChannelNormImpl(std::int64_t channels)
      : norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({channels}).eps(1e-6)))) {}
  Tensor forward(const Tensor& x) { return norm(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2}); }

  nn::LayerNorm norm;
};
TORCH_MODULE(ChannelNorm);

struct BlockImpl : nn::Module {
  explicit BlockImpl(std::int64_t channels)
      : depthwise(register_module(
            "depthwise",
            nn::Conv2d(nn::Conv2dOptions(channels, channels, 7).padding(3).groups(channels)))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({channels}).eps(1e-6)))),
        widen(register_module("widen", nn::Linear(channels, 4 * channels))),
        narrow(register_module("narrow", nn::Linear(4 * channels, channels))),
        scale(register_parameter("scale", at::full({channels}, 1e-2))) {}

  Tensor forward(const Tensor& x) {
    Tensor inner = norm(depthwise(x).permute({0, 2, 3, 1}));
    inner = narrow(at::gelu(widen(inner))) * scale;
    return x + inner.permute({0, 3, 1, 2});
  }

  nn::Conv2d depthwise;
  nn::LayerNorm norm;
  nn::Linear widen;
  nn::Linear narrow;
  Tensor scale;
};
TORCH_MODULE(Block);

struct ConvNext : nn::Module {
  ConvNext(const Options& options, std::int64_t classes) {
    std::int64_t channels = options.width;
    body->push_back(
        nn::Conv2d(nn::Conv2dOptions(3, channels, options.patch).stride(options.patch)));
    body->push_back(ChannelNorm(channels));
    for (int stage = 0; stage < 4; ++stage) {
      if (stage > 0) {
        // With kernel 3 and padding 1, odd sides lose no row or column, and an image of one pixel
        // keeps its size.
        body->push_back(ChannelNorm(channels));
        body->push_back(
            nn::Conv2d(nn::Conv2dOptions(channels, 2 * channels, 3).stride(2).padding(1)));
        channels *= 2;
      }
      const std::int64_t blocks = stage == 2 ? 3 * options.depth : options.depth;
      for (std::int64_t b = 0; b < blocks; ++b) body->push_back(Block(channels));
    }
    register_module("body", body);
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({channels}).eps(1e-6)));
    head = register_module("head", nn::Linear(channels, classes));
  }

  Tensor forward(const Tensor& images) { return head(norm(body->forward(images).mean({2, 3}))); }

  nn::Sequential body;
  nn::LayerNorm norm = nullptr;
  nn::Linear head = nullptr;
};

std::unique_ptr<precast::Model> make(const precast::ModelSpec& spec, const Options& options) {
  return precast::models::detail::as_model(std::make_shared<ConvNext>(options, spec.num_classes));
}

void add_parts(precast::TrainParts& parts) {
  parts.models.add("convnext", "small network in the style of ConvNeXt", make);
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
