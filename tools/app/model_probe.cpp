#include "tools/app/model_probe.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <memory>
#include <set>

#include "framework/api/single_rank.h"
#include "framework/api/torch_message.h"
#include "framework/core/error.h"
#include "framework/engine/out_of_memory.h"
#include "framework/engine/precision.h"
#include "tools/app/registries.h"

namespace precast::tools {
namespace {

/// A rank that records whether any collective was requested.
class RecordingCommunicator final : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int world() const override { return 1; }
  void all_reduce_sum(std::vector<at::Tensor> /*tensors*/) override { called = true; }
  void reduce_sum(std::vector<at::Tensor> /*tensors*/, int /*root*/) override { called = true; }
  void broadcast(std::vector<at::Tensor> /*tensors*/, int /*root*/) override { called = true; }
  [[nodiscard]] std::vector<std::string> all_gather(const std::string& text) override {
    called = true;
    return {text};
  }
  [[nodiscard]] std::unique_ptr<PendingSum> begin_sum(std::int64_t value) override {
    called = true;
    return make_single_rank()->begin_sum(value);
  }

  bool called = false;
};

/// Returns the logits of a new model for synthetic images. All calls use the same weights and
/// images.
at::Tensor logits(const ModelRegistry& models, const ModelSpec& spec, std::int64_t size_px,
                  bool training, std::int64_t images = 2) {
  const at::NoGradGuard no_grad;
  at::manual_seed(1);
  const std::unique_ptr<Model> model = make_model(models, spec);
  model->train(training);
  at::manual_seed(2);
  return model->forward(make_batch(at::randn({images, spec.in_channels, size_px, size_px})));
}

bool blurpool_has_effect(const ModelRegistry& models, ModelSpec spec, std::int64_t size_px) {
  const at::Tensor with = logits(models, spec, size_px, /*training=*/false);
  spec.blurpool = false;
  return !at::equal(with, logits(models, spec, size_px, /*training=*/false));
}

bool sync_bn_has_effect(const ModelRegistry& models, ModelSpec spec, std::int64_t size_px) {
  RecordingCommunicator rank;
  spec.batch_norm_ranks = &rank;
  static_cast<void>(logits(models, spec, size_px, /*training=*/true));
  return rank.called;
}

bool ghost_batches_have_effect(const ModelRegistry& models, ModelSpec spec, std::int64_t size_px) {
  spec.ghost_batch_size = 2;
  const at::Tensor with = logits(models, spec, size_px, /*training=*/true, /*images=*/4);
  spec.ghost_batch_size = 0;
  return !at::equal(with, logits(models, spec, size_px, /*training=*/true, /*images=*/4));
}

}  // namespace

std::vector<std::string> find_ignored_settings(const ModelRegistry& models, const TrainPlan& plan,
                                               bool sync_bn) {
  ModelSpec spec = plan.model;
  spec.batch_norm_ranks = nullptr;
  const std::int64_t size_px = plan.image_size_px.empty() ? 0 : plan.image_size_px.back();
  std::vector<std::string> ignored;
  const auto probe = [&](bool is_set, auto has_effect, const std::string& sentence) {
    try {
      if (is_set && !has_effect()) ignored.push_back(sentence);
    } catch (const std::exception&) {  // the model rejects the setting or cannot be tested here
    }
  };
  probe(
      spec.blurpool && size_px > 0, [&] { return blurpool_has_effect(models, spec, size_px); },
      fmt::format("blurpool found no layer to replace in model '{}'. It acts on modules of type "
                  "models::detail::BlurConv2d with a stride above 1 and at least 16 input channels",
                  spec.arch));
  probe(
      sync_bn && size_px > 0, [&] { return sync_bn_has_effect(models, spec, size_px); },
      fmt::format("dist.sync_bn found no layer to synchronise in model '{}'. It acts on norms that "
                  "are models::detail::BatchNorm2d",
                  spec.arch));
  probe(
      spec.ghost_batch_size > 0 && size_px > 0,
      [&] { return ghost_batches_have_effect(models, spec, size_px); },
      fmt::format("ghost_batch_norm found no layer to change in model '{}'. It acts on norms that "
                  "are models::detail::BatchNorm2d",
                  spec.arch));
  return ignored;
}

bool is_own_classifier(const ModelSpec& spec, const Batch& batch) {
  const at::Tensor& input = batch.input();
  const bool images =
      batch.inputs.size() == 1 && input.dim() == 4 && input.size(1) == spec.in_channels;
  return images && spec.targets == TargetKind::class_index && is_built_in(spec.arch);
}

at::Tensor check_output(Model* model, const TrainPlan& plan, const Batch& batch) {
  const ModelSpec& spec = plan.model;
  if (is_own_classifier(spec, batch)) {
    return at::zeros({batch.size(), spec.num_classes},
                     at::device(batch.input().device()).dtype(at::kFloat));
  }
  const at::Tensor& input = batch.input();
  const auto refuse = [&](const std::string& expected, const std::string& got) {
    throw ConfigError(fmt::format("model '{}': expected {}, got {}", spec.arch, expected, got));
  };
  if (model->parameters().empty()) refuse("parameters to train", "none");
  const at::NoGradGuard no_grad;
  model->train(false);
  const auto shape = [](const at::Tensor& tensor) {
    return fmt::format("[{}]", fmt::join(tensor.sizes(), ", "));
  };
  at::Tensor output;
  try {
    const engine::AutocastScope autocast(input.device(), plan.precision);
    output = model->forward(batch);
  } catch (const c10::Error& error) {
    if (engine::is_device_error(error)) throw;
    refuse(fmt::format("a model that accepts inputs of shape {}", shape(input)),
           fmt::format("an error: {}. See data.inputs", first_line(error)));
  }
  const bool is_classification = spec.targets == TargetKind::class_index;
  const std::string expected = fmt::format(
      "{} for inputs {}",
      is_classification ? fmt::format("logits [2, {}]", spec.num_classes) : "outputs [2, ...]",
      shape(input));
  if (!output.defined()) refuse(expected, "an undefined tensor");
  const bool fits = is_classification ? output.sizes() == at::IntArrayRef({2, spec.num_classes})
                                      : output.dim() > 0 && output.size(0) == 2;
  if (!fits) refuse(expected, shape(output));
  if (!output.is_floating_point()) refuse(expected, c10::toString(output.scalar_type()));
  model->train(true);
  return output;
}

std::string image_size_problem(const ModelRegistry& models, const TrainPlan& plan,
                               const std::set<std::int64_t>& sizes_px) {
  ModelSpec spec = plan.model;
  spec.batch_norm_ranks = nullptr;
  const at::NoGradGuard no_grad;
  const std::unique_ptr<Model> model = make_model(models, spec);
  model->train(false);
  for (const std::int64_t size_px : sizes_px) {
    try {
      static_cast<void>(
          model->forward(make_batch(at::zeros({1, spec.in_channels, size_px, size_px}))));
    } catch (const c10::NotImplementedError&) {
      return {};
    } catch (const c10::Error& error) {
      const std::string reason = first_line(error);
      if (sizes_px.size() == 1) {
        return fmt::format(
            "model '{}': expected a model that works on images of {} px, got an "
            "error: {}",
            spec.arch, size_px, reason);
      }
      return fmt::format(
          "model '{}': expected a model that works at every image size of the recipe ({} px), got "
          "an error at {} px: {}. Either make resolution.min_res, resolution.max_res and "
          "validation.resolution equal and use no method that makes images smaller "
          "(batch_resize, selective_backprop with scale_factor), or take the mean over the image "
          "before the first linear layer (global_avg_pool), so that the model works on any size",
          spec.arch, fmt::join(sizes_px, ", "), size_px, reason);
    }
  }
  return {};
}

}  // namespace precast::tools
