// Learning without labels from two random views of each image: SimCLR (Chen et al., "A Simple
// Framework for Contrastive Learning of Visual Representations", ICML 2020).
//
//   precast train recipe.yaml          pretraining: loss `nt_xent`, metric `view_top_1`
//   precast train probe.yaml --model.weights=...    a linear classifier on the learned features
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <torch/nn/functional/normalization.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <limits>
#include <memory>
#include <vector>

#include "framework/api/model_spec.h"
#include "framework/api/plugin.h"
#include "framework/core/error.h"
#include "models/detail/module_model.h"

namespace {

using at::Tensor;
using precast::Batch;
using precast::Schema;
using precast::TargetKind;
namespace nn = torch::nn;

/// The keys of model.params.
struct ModelOptions {
  std::int64_t width = 32;
  std::int64_t hidden = 256;

  void options(Schema& schema) {
    schema.add("width", &width, "channels of the first convolution").min(1);
    schema.add("hidden", &hidden, "features before the last layer").min(1);
  }
};

/// Three convolutions, a hidden layer and a last layer (`fc`), applied to each input. With one
/// input, the outputs are logits [N, num_classes]; with several inputs, which are views of the same
/// samples, they are unit vectors, [N, views, num_classes]. The classifier can load the weights of
/// pretraining, because only `fc` differs.
struct TwoViews : nn::Module {
  TwoViews(const precast::ModelSpec& spec, const ModelOptions& o)
      : hidden(register_module("hidden", nn::Linear(4 * o.width, o.hidden))),
        fc(register_module("fc", nn::Linear(o.hidden, spec.num_classes))) {
    std::int64_t in = spec.in_channels;
    for (const std::int64_t out : {o.width, 2 * o.width, 4 * o.width}) {
      encoder->push_back(
          nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(2).padding(1).bias(false)));
      encoder->push_back(nn::BatchNorm2d(out));
      encoder->push_back(nn::ReLU());
      in = out;
    }
    register_module("encoder", encoder);
  }

  Tensor forward(const Batch& batch) {
    const auto views = static_cast<std::int64_t>(batch.inputs.size());
    if (views == 1) return outputs_of(batch.input());
    std::vector<Tensor> images;
    for (std::int64_t view = 0; view < views; ++view)
      images.push_back(batch.input(static_cast<std::size_t>(view)));
    const Tensor all = nn::functional::normalize(outputs_of(at::cat(images)),
                                                 nn::functional::NormalizeFuncOptions().dim(1));
    return all.view({views, -1, all.size(1)}).transpose(0, 1);
  }

  Tensor outputs_of(const Tensor& images) {
    return fc(at::relu(hidden(encoder->forward(images).mean({2, 3}))));
  }

  nn::Sequential encoder;
  nn::Linear hidden;
  nn::Linear fc;
};

std::unique_ptr<precast::Model> make_model(const precast::ModelSpec& spec,
                                           const ModelOptions& options) {
  return precast::models::detail::as_model(std::make_shared<TwoViews>(spec, options));
}

/// The keys loss.*.
struct LossOptions {
  double temperature = 0.5;

  void options(Schema& schema) {
    schema.add("temperature", &temperature, "divisor of the similarities").above(0);
  }
};

/// NT-Xent, "normalized temperature-scaled cross entropy" (equation 1 of the paper): for each view,
/// the other view of the same image must be found among all other views of the micro-batch of one
/// rank. Expects unit vectors [N, 2, D] as outputs.
class NtXent final : public precast::Loss {
 public:
  explicit NtXent(double temperature) : temperature_(temperature) {}

  [[nodiscard]] TargetKind target_kind() const override { return TargetKind::none; }
  [[nodiscard]] Tensor operator()(const Tensor& outputs, const Batch& batch) const override {
    return per_sample(outputs, batch).mean();
  }
  /// Returns the loss of each sample, the mean over its two views, [N].
  [[nodiscard]] Tensor per_sample(const Tensor& outputs, const Batch& /*batch*/) const override {
    precast::require(outputs.dim() == 3 && outputs.size(1) == 2, "outputs are [N, 2, D]");
    const std::int64_t n = outputs.size(0);
    // The rows are the first views of all samples, then all second views.
    const Tensor views = outputs.to(at::kFloat).transpose(0, 1).reshape({2 * n, -1});
    Tensor similarities = at::matmul(views, views.t()) / temperature_;
    similarities.fill_diagonal_(-std::numeric_limits<float>::infinity());
    const Tensor other = at::arange(2 * n, similarities.options().dtype(at::kLong)).roll(n);
    const Tensor losses = at::cross_entropy_loss(similarities, other, {}, at::Reduction::None);
    return losses.view({2, n}).mean(0);
  }

 private:
  double temperature_;
};

std::unique_ptr<precast::Loss> make_loss(const LossOptions& options) {
  return std::make_unique<NtXent>(options.temperature);
}

/// The fraction of samples whose first view is closer to their own second view than to that of any
/// other sample of the dataset. Expects unit vectors [N, 2, D] as outputs.
class ViewTop1 final : public precast::Metric {
 public:
  [[nodiscard]] std::string name() const override { return "view_top_1"; }
  [[nodiscard]] bool accepts(TargetKind kind) const override { return kind == TargetKind::none; }
  [[nodiscard]] bool needs_rows() const override { return true; }
  [[nodiscard]] std::int64_t sums() const override { return 0; }
  [[nodiscard]] Tensor count(const Tensor& outputs, const Batch& /*batch*/) const override {
    precast::require(outputs.dim() == 3 && outputs.size(1) == 2, "outputs are [N, 2, D]");
    return outputs.flatten(1).to(at::kDouble);
  }
  [[nodiscard]] double value(const Tensor& rows, std::int64_t samples) const override {
    const Tensor views = rows.view({samples, 2, -1});
    const Tensor closest = at::matmul(views.select(1, 0), views.select(1, 1).t()).argmax(1);
    const Tensor own = at::arange(samples, closest.options());
    return closest.eq(own).to(at::kDouble).mean().item<double>();
  }
};

void add_parts(precast::TrainParts& parts) {
  parts.models.add("two_views", "convolutions for one or more views of an image", make_model);
  parts.losses.add("nt_xent", "contrastive loss of two views (SimCLR)", make_loss);
  parts.metrics.add("view_top_1",
                    "share of images whose first view is closest to their own second view",
                    [] { return std::make_unique<ViewTop1>(); });
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
