#include "models/resnet.h"

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/relu.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "models/detail/batch_norm.h"
#include "models/detail/blur_conv.h"
#include "models/detail/fused_blur.h"
#include "models/detail/max_pool.h"
#include "models/detail/module_model.h"
#include "models/detail/stochastic_depth.h"

namespace precast::models {
namespace {

using detail::BatchNorm2d;
using detail::BlurConv2d;
using detail::Forked;

/// Builds the layers of a network as torchvision does: square kernels, "same" padding, no bias.
struct LayerMaker {
  bool blurpool = false;
  Communicator* batch_norm_ranks = nullptr;
  std::int64_t ghost_batch_size = 0;
  bool fused = false;

  [[nodiscard]] BlurConv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel,
                                std::int64_t stride = 1, std::int64_t groups = 1) const {
    BlurConv2d made(torch::nn::Conv2dOptions(in, out, kernel)
                        .stride(stride)
                        .padding(kernel / 2)
                        .groups(groups)
                        .bias(false),
                    blurpool);
    if (fused) made->fuse();
    return made;
  }
  [[nodiscard]] BatchNorm2d norm(std::int64_t channels) const {
    BatchNorm2d made(channels, batch_norm_ranks, ghost_batch_size);
    if (fused) made->fuse();
    return made;
  }
};

/// The projection on the shortcut of a block that changes the shape of its input.
struct DownsampleImpl : torch::nn::Module {
  DownsampleImpl(std::int64_t in, std::int64_t out, std::int64_t stride, const LayerMaker& make)
      : conv(register_module("0", make.conv(in, out, 1, stride))),
        bn(register_module("1", make.norm(out))) {}

  BlurConv2d conv;
  BatchNorm2d bn;
};
TORCH_MODULE(Downsample);

/// One residual block. `downsample` may be empty.
struct Block : torch::nn::Module {
  /// @param x the input: `y` for the branch, `fork` for the shortcut.
  virtual Forked forward(const Forked& x) = 0;
  /// The last norm of the branch, before the addition.
  [[nodiscard]] virtual BatchNorm2d last_norm() const = 0;

  double drop_rate = 0;
  bool drops_per_sample = false;

 protected:
  /// @param branch the input of the last norm.
  /// @param x the block's input.
  Forked add_shortcut(const at::Tensor& branch, const Forked& x) {
    if (downsample) return add_projection(branch, downsample->conv(x.fork));
    if (!drops()) return last_norm()->forward_relu_fork(branch, x.fork);
    return add_after_drop(branch, x.fork);
  }
  /// @param projected the result of the projection's convolution.
  Forked add_projection(const at::Tensor& branch, const at::Tensor& projected) {
    if (!drops()) return last_norm()->forward_relu_fork(branch, projected, *downsample->bn);
    return add_after_drop(branch, downsample->bn(projected));
  }
  Downsample downsample = nullptr;

 private:
  [[nodiscard]] bool drops() const { return drop_rate != 0 && is_training(); }
  /// Computes the end of a block whose branch stochastic depth may drop.
  Forked add_after_drop(const at::Tensor& branch, const at::Tensor& shortcut) {
    at::Tensor kept = detail::drop_branch(last_norm()(branch), drop_rate, drops_per_sample);
    kept.add_(shortcut).relu_();
    return {kept, kept};
  }
};

/// Channels and stride of one block.
struct BlockShape {
  std::int64_t in;
  std::int64_t planes;
  std::int64_t stride;
  std::int64_t groups;
  std::int64_t width_per_group;
};

struct BasicBlock final : Block {
  static constexpr std::int64_t kExpansion = 1;

  BasicBlock(const BlockShape& s, const Downsample& shortcut, const LayerMaker& make)
      : conv1(register_module("conv1", make.conv(s.in, s.planes, 3, s.stride))),
        bn1(register_module("bn1", make.norm(s.planes))),
        conv2(register_module("conv2", make.conv(s.planes, s.planes, 3))),
        bn2(register_module("bn2", make.norm(s.planes))) {
    if (shortcut) downsample = register_module("downsample", shortcut);
  }

  Forked forward(const Forked& x) override {
    if (downsample && conv1->can_share_blur(*downsample->conv, x.y)) {
      const detail::Blurred blurred = detail::fused_blur_both(x.y);
      const at::Tensor branch = branch_after_conv1(conv1->forward_blurred(blurred.all));
      return add_projection(branch, downsample->conv->forward_blurred(blurred.even));
    }
    return add_shortcut(branch_after_conv1(conv1(x.y)), x);
  }
  [[nodiscard]] BatchNorm2d last_norm() const override { return bn2; }
  at::Tensor branch_after_conv1(const at::Tensor& x) { return conv2(bn1->forward_relu(x)); }

  BlurConv2d conv1;
  BatchNorm2d bn1;
  BlurConv2d conv2;
  BatchNorm2d bn2;
};

struct Bottleneck final : Block {
  static constexpr std::int64_t kExpansion = 4;

  Bottleneck(const BlockShape& s, const Downsample& shortcut, const LayerMaker& make)
      : width(s.planes * s.width_per_group / 64 * s.groups),
        conv1(register_module("conv1", make.conv(s.in, width, 1))),
        bn1(register_module("bn1", make.norm(width))),
        conv2(register_module("conv2", make.conv(width, width, 3, s.stride, s.groups))),
        bn2(register_module("bn2", make.norm(width))),
        conv3(register_module("conv3", make.conv(width, s.planes * kExpansion, 1))),
        bn3(register_module("bn3", make.norm(s.planes * kExpansion))) {
    if (shortcut) downsample = register_module("downsample", shortcut);
  }

  Forked forward(const Forked& x) override {
    const at::Tensor inner = bn1->forward_relu(conv1(x.y));
    return add_shortcut(conv3(bn2->forward_relu(conv2(inner))), x);
  }
  [[nodiscard]] BatchNorm2d last_norm() const override { return bn3; }

  std::int64_t width;
  BlurConv2d conv1;
  BatchNorm2d bn1;
  BlurConv2d conv2;
  BatchNorm2d bn2;
  BlurConv2d conv3;
  BatchNorm2d bn3;
};

/// Blocks at one resolution.
struct StageImpl : torch::nn::Module {
  void append(const std::shared_ptr<Block>& block) {
    blocks.push_back(register_module(std::to_string(blocks.size()), block));
  }
  Forked forward(Forked x) {
    for (const auto& block : blocks) x = block->forward(x);
    return x;
  }
  std::vector<std::shared_ptr<Block>> blocks;
};
TORCH_MODULE(Stage);

template <typename BlockType>
struct ResNet : torch::nn::Module {
  ResNet(const ResNetShape& shape, const ModelSpec& spec, const ResNetOptions& options)
      : make_{spec.blurpool, spec.batch_norm_ranks, spec.ghost_batch_size, spec.fused_kernels} {
    conv1 = register_module("conv1", make_.conv(spec.in_channels, kStemChannels, 7, 2));
    bn1 = register_module("bn1", make_.norm(kStemChannels));
    maxpool = register_module("maxpool", detail::MaxPool2d(3, 2, 1));
    if (spec.fused_kernels) maxpool->fuse();
    std::int64_t in = kStemChannels;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      stages[i] = register_module("layer" + std::to_string(i + 1), make_stage(shape, i, in));
      in = (kStemChannels << i) * BlockType::kExpansion;
    }
    fc = register_module("fc", torch::nn::Linear(in, spec.num_classes));
    initialise(options);
  }

  at::Tensor forward(const at::Tensor& images) {
    Forked x = bn1->forward_relu_pool(conv1(images), maxpool);
    for (Stage& stage : stages) x = stage(x);
    return fc(at::adaptive_avg_pool2d(x.y, {1, 1}).flatten(1));
  }

 private:
  static constexpr std::int64_t kStemChannels = 64;

  Stage make_stage(const ResNetShape& shape, std::size_t index, std::int64_t in) {
    const std::int64_t planes = kStemChannels << index;
    const std::int64_t out = planes * BlockType::kExpansion;
    const std::int64_t stride = index == 0 ? 1 : 2;
    Stage stage;
    for (std::int64_t b = 0; b < shape.blocks[index]; ++b) {
      const BlockShape block{.in = b == 0 ? in : out,
                             .planes = planes,
                             .stride = b == 0 ? stride : 1,
                             .groups = shape.groups,
                             .width_per_group = shape.width_per_group};
      // Built before the block's own layers, as in torchvision, because both draw from the same
      // generator.
      Downsample shortcut = nullptr;
      if (block.stride != 1 || block.in != out)
        shortcut = Downsample(block.in, out, block.stride, make_);
      stage->append(std::make_shared<BlockType>(block, shortcut, make_));
    }
    return stage;
  }

  /// Draws the convolutions' initial weights as torchvision does, and applies `options`. Call after
  /// every layer has drawn its default weights. The linear layer keeps its default weights; with
  /// log_bias, its biases are replaced.
  void initialise(const ResNetOptions& options) {
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->template as<torch::nn::Conv2dImpl>())
        torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
    }
    if (options.log_bias) {
      torch::nn::init::constant_(fc->bias, -std::log(static_cast<double>(fc->bias.numel())));
    }
    // Squeeze-and-excitation draws its weights last, so that all other layers have the same initial
    // weights with and without it.
    if (options.squeeze_excite.latent_channels > 0) add_squeeze_excites(options);
    const auto& depth = options.stochastic_depth;
    set_drop_rates({.drop_rate = depth.drop_rate,
                    .per_sample = depth.mode == "sample",
                    .linear = depth.distribution == "linear"});
    if (!options.zero_init_residual) return;
    for (const auto& block : blocks()) torch::nn::init::constant_(block->last_norm()->weight, 0);
  }

  void add_squeeze_excites(const ResNetOptions& options) {
    for (const auto& module : modules(/*include_self=*/false)) {
      auto* conv = module->template as<detail::BlurConv2dImpl>();
      if (conv == nullptr) continue;
      const auto& shape = conv->options;
      if (std::min(shape.in_channels(), shape.out_channels()) >=
          options.squeeze_excite.min_channels)
        conv->add_squeeze_excite(options.squeeze_excite.latent_channels);
    }
  }

  void set_drop_rates(const detail::StochasticDepthOptions& options) {
    const auto all = blocks();
    const std::vector<double> rates = detail::drop_rates(options, all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i]->drop_rate = rates[i];
      all[i]->drops_per_sample = options.per_sample;
    }
  }

  [[nodiscard]] std::vector<std::shared_ptr<Block>> blocks() const {
    std::vector<std::shared_ptr<Block>> all;
    for (const Stage& stage : stages)
      all.insert(all.end(), stage->blocks.begin(), stage->blocks.end());
    return all;
  }

  LayerMaker make_;
  BlurConv2d conv1 = nullptr;
  BatchNorm2d bn1 = nullptr;
  detail::MaxPool2d maxpool = nullptr;
  std::array<Stage, 4> stages{nullptr, nullptr, nullptr, nullptr};
  torch::nn::Linear fc = nullptr;
};

}  // namespace

bool ResNetOptions::affects_evaluation(std::string_view name) {
  return name != "zero_init_residual" && name != "log_bias" &&
         !name.starts_with("stochastic_depth.");
}

void ResNetOptions::options(Schema& schema) {
  schema.add("zero_init_residual", &zero_init_residual,
             "weights of the last norm of each block start at 0");
  schema.add("log_bias", &log_bias,
             "biases of the last layer start at -log(classes); for losses such as bce");
  schema
      .add("squeeze_excite.latent_channels", &squeeze_excite.latent_channels,
           "channels of the hidden layer; below 1: a fraction of the convolution's output "
           "channels; 0: no squeeze-excite")
      .min(0);
  schema
      .add("squeeze_excite.min_channels", &squeeze_excite.min_channels,
           "minimum number of input and output channels; convolutions with fewer are unchanged")
      .min(1);
  schema
      .add("stochastic_depth.drop_rate", &stochastic_depth.drop_rate,
           "drop probability of the last residual branch (uniform: of every branch)")
      .min(0)
      .below(1);
  schema
      .add("stochastic_depth.mode", &stochastic_depth.mode,
           "block: drop a branch for the whole batch; sample: for each sample separately")
      .choices({"block", "sample"});
  schema
      .add("stochastic_depth.distribution", &stochastic_depth.distribution,
           "drop rate of block i = 1 ... n. linear: drop_rate * i / n; uniform: drop_rate")
      .choices({"linear", "uniform"});
}

std::unique_ptr<Model> make_resnet(const ResNetShape& shape, const ModelSpec& spec,
                                   const ResNetOptions& options) {
  if (spec.num_classes < 1) {
    throw ConfigError(fmt::format("model {}: expected at least 1 class, got {} (num_classes)",
                                  spec.arch, spec.num_classes));
  }
  if (spec.in_channels < 1) {
    throw ConfigError(fmt::format("model {}: expected at least 1 channel, got {} (in_channels)",
                                  spec.arch, spec.in_channels));
  }
  if (shape.bottleneck) {
    return detail::as_model(std::make_shared<ResNet<Bottleneck>>(shape, spec, options));
  }
  return detail::as_model(std::make_shared<ResNet<BasicBlock>>(shape, spec, options));
}

}  // namespace precast::models
