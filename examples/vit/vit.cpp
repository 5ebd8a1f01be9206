// A small vision transformer (Dosovitskiy et al., ICLR 2021) in the plain form of Beyer et al.,
// "Better plain ViT baselines for ImageNet-1k" (2022): fixed sine-cosine position embeddings, which
// work for every image size, and the mean of all patches in place of a class token.
//
//   precast train RECIPE.yaml --plugins=[vit.so] --model.arch=vit --model.params='{patch: 4}'
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sin.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>
#include <vector>

#include "framework/api/model_spec.h"
#include "framework/api/plugin.h"
#include "models/detail/module_model.h"

namespace {

using at::Tensor;
namespace nn = torch::nn;

/// The keys of model.params.
struct Options {
  std::int64_t patch = 16;
  std::int64_t width = 192;
  std::int64_t depth = 6;
  std::int64_t heads = 3;

  void options(precast::Schema& schema) {
    schema.add("patch", &patch, "side of a patch, px").min(1);
    schema.add("width", &width, "channels of a token; a multiple of 4 and of heads").min(4);
    schema.add("depth", &depth, "number of blocks").min(1);
    schema.add("heads", &heads, "number of attention heads").min(1);
  }
};

/// Position embeddings of an h x w grid, [h * w, width].
Tensor positions(std::int64_t h, std::int64_t w, std::int64_t width,
                 const at::TensorOptions& like) {
  const Tensor rate = at::pow(
      1e4, at::arange(width / 4, like.dtype(at::kFloat)) / (-static_cast<double>(width) / 4));
  const auto waves = [&](std::int64_t side) {
    const Tensor angle = at::outer(at::arange(side, like.dtype(at::kFloat)), rate);
    return at::cat({at::sin(angle), at::cos(angle)}, 1);
  };
  const Tensor rows = waves(h).unsqueeze(1).expand({h, w, width / 2});
  const Tensor columns = waves(w).unsqueeze(0).expand({h, w, width / 2});
  return at::cat({rows, columns}, 2).view({h * w, width}).to(like.dtype());
}

struct BlockImpl : nn::Module {
  explicit BlockImpl(const Options& o)
      : heads(o.heads),
        norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({o.width})))),
        qkv(register_module("qkv", nn::Linear(o.width, 3 * o.width))),
        project(register_module("project", nn::Linear(o.width, o.width))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({o.width})))),
        widen(register_module("widen", nn::Linear(o.width, 4 * o.width))),
        narrow(register_module("narrow", nn::Linear(4 * o.width, o.width))) {}

  /// @param x [N, tokens, width]
  Tensor forward(const Tensor& x) {
    const std::int64_t n = x.size(0), tokens = x.size(1), width = x.size(2);
    // [3, N, heads, tokens, width / heads]
    const Tensor parts =
        qkv(norm1(x)).view({n, tokens, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const Tensor seen = at::scaled_dot_product_attention(parts[0], parts[1], parts[2]);
    const Tensor y = x + project(seen.transpose(1, 2).reshape({n, tokens, width}));
    return y + narrow(at::gelu(widen(norm2(y))));
  }

  std::int64_t heads;
  nn::LayerNorm norm1;
  nn::Linear qkv;
  nn::Linear project;
  nn::LayerNorm norm2;
  nn::Linear widen;
  nn::Linear narrow;
};
TORCH_MODULE(Block);

struct VisionTransformer : nn::Module {
  VisionTransformer(const Options& o, std::int64_t classes)
      : patches(register_module(
            "patches", nn::Conv2d(nn::Conv2dOptions(3, o.width, o.patch).stride(o.patch)))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({o.width})))),
        head(register_module("head", nn::Linear(o.width, classes))) {
    for (std::int64_t b = 0; b < o.depth; ++b)
      blocks.push_back(register_module("block" + std::to_string(b), Block(o)));
  }

  Tensor forward(const Tensor& images) {
    const Tensor grid = patches(images);  // [N, width, h, w]
    Tensor x = grid.flatten(2).transpose(1, 2);
    x = x + positions(grid.size(2), grid.size(3), grid.size(1), grid.options());
    for (Block& block : blocks) x = block(x);
    return head(norm(x).mean(1));
  }

  nn::Conv2d patches;
  nn::LayerNorm norm;
  nn::Linear head;
  std::vector<Block> blocks;
};

std::unique_ptr<precast::Model> make(const precast::ModelSpec& spec, const Options& options) {
  if (options.width % 4 != 0 || options.width % options.heads != 0)
    throw precast::ConfigError("model.params.width: expected a multiple of 4 and of heads, got " +
                               std::to_string(options.width));
  return precast::models::detail::as_model(
      std::make_shared<VisionTransformer>(options, spec.num_classes));
}

void add_parts(precast::TrainParts& parts) {
  parts.models.add("vit", "vision transformer", make);
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
