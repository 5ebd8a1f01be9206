#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <utility>
#include <vector>

#include "framework/api/model.h"
#include "framework/core/export.h"
#include "models/detail/blurred_layers.h"
#include "models/detail/fused_layer_counts.h"

namespace precast::models::detail {

/// The tensors of a torch::nn::Module in the form that Model specifies. Parameters are the module's
/// own tensors; in state() they are detached from autograd, with the same memory. A tensor or
/// module may be registered under several names: parameters() then lists only its first name,
/// state() lists all of its names.
[[nodiscard]] PRECAST_API std::vector<NamedTensor> parameters_of(const torch::nn::Module& module);
[[nodiscard]] PRECAST_API std::vector<NamedTensor> state_of(const torch::nn::Module& module);
/// The layers of type BlurConv2d in `module` that blur.
[[nodiscard]] PRECAST_API BlurredLayers blurred_layers_of(const torch::nn::Module& module);
/// Counts the layers of types BatchNorm2d, BlurConv2d and MaxPool2d in `module`.
[[nodiscard]] PRECAST_API FusedLayerCounts fused_layer_counts_of(const torch::nn::Module& module);
/// Moves the module without replacing its tensor objects, so that existing optimisers stay valid;
/// drops gradients.
PRECAST_API void move(torch::nn::Module& module, at::Device device, bool channels_last);

/// A Model that wraps a torch::nn::Module with `at::Tensor forward(const Batch&)` or, if it needs
/// only the first input, `at::Tensor forward(const at::Tensor&)`.
template <typename Net>
class ModuleModel final : public Model, public HasBlurredLayers, public HasFusedLayerCounts {
 public:
  explicit ModuleModel(std::shared_ptr<Net> net) : net_(std::move(net)) {}

  [[nodiscard]] at::Tensor forward(const Batch& batch) override {
    if constexpr (requires { net_->forward(batch); }) {
      return net_->forward(batch);
    } else {
      return net_->forward(batch.input());
    }
  }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override {
    return parameters_of(*net_);
  }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return state_of(*net_); }
  [[nodiscard]] BlurredLayers blurred_layers() const override { return blurred_layers_of(*net_); }
  [[nodiscard]] FusedLayerCounts fused_layer_counts() const override {
    return fused_layer_counts_of(*net_);
  }
  void train(bool training) override { net_->train(training); }
  void to(at::Device device, bool channels_last) override { move(*net_, device, channels_last); }

 private:
  std::shared_ptr<Net> net_;
};

/// Makes a module usable as a model. Plug-ins may call it too.
template <typename Net>
[[nodiscard]] std::unique_ptr<Model> as_model(std::shared_ptr<Net> net) {
  return std::make_unique<ModuleModel<Net>>(std::move(net));
}

}  // namespace precast::models::detail
