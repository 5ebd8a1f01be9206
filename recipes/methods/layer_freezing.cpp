#include "recipes/methods/layer_freezing.h"

#include <string>

#include "framework/api/model.h"
#include "framework/api/run_facts.h"

namespace precast::recipes {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The trainable parameters of each layer, in the model's order. Layers that training.freeze has
/// frozen are left out, so the last layer of the result is trainable.
std::vector<Tensors> layers_of(const Model& model) {
  std::vector<Tensors> layers;
  std::string last;
  for (const NamedTensor& parameter : model.parameters()) {
    if (!parameter.tensor.requires_grad()) continue;
    const std::string layer = parameter.name.substr(0, parameter.name.rfind('.'));
    if (layers.empty() || layer != last) layers.emplace_back();
    layers.back().push_back(parameter.tensor);
    last = layer;
  }
  return layers;
}

class LayerFreezing final : public Method {
 public:
  void options(Schema& schema) override {
    schema.add("freeze_start", &freeze_start_, "fraction of the run before the first layer freezes")
        .min(0)
        .below(1);
    schema
        .add("freeze_level", &freeze_level_,
             "fraction of the layers, without the last one, that are frozen at the end of the run")
        .min(0)
        .max(1);
  }

  void on_run(const RunFacts& run) override { run_ = run; }

  void on_epoch_begin(std::int64_t epoch, Model& model) override {
    // An epoch may begin a second time, after a checkpoint has been restored.
    for (const at::Tensor& parameter : frozen_) parameter.requires_grad_(true);
    frozen_.clear();
    const std::vector<Tensors> layers = layers_of(model);
    if (layers.empty()) return;
    // Rounded down, as in Composer, without the tolerance of floor_share().
    const auto depth =
        static_cast<std::size_t>(share(epoch) * static_cast<double>(layers.size() - 1));
    for (std::size_t i = 0; i < depth; ++i) {
      for (const at::Tensor& parameter : layers[i]) {
        frozen_.push_back(parameter);
        // With several ranks, the reducer waits for every registered gradient, so on_backward()
        // drops these gradients instead.
        if (run_.world == 1) parameter.requires_grad_(false);
      }
    }
  }

  [[nodiscard]] bool varies_between_steps() const override { return freeze_level_ > 0; }
  /// With several ranks, on_backward() cannot be recorded, because it drops different gradients in
  /// different epochs.
  [[nodiscard]] bool records_hooks(int world) const override { return world == 1; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }
  void on_backward(Model& /*model*/) override {
    for (const at::Tensor& parameter : frozen_) parameter.mutable_grad().reset();
  }

 private:
  /// The fraction of the layers that is frozen in `epoch`.
  [[nodiscard]] double share(std::int64_t epoch) const {
    const double done = static_cast<double>(epoch) / static_cast<double>(run_.epochs);
    if (done <= freeze_start_) return 0;
    return freeze_level_ * (done - freeze_start_) / (1 - freeze_start_);
  }

  double freeze_start_ = 0.5;
  double freeze_level_ = 1;
  RunFacts run_;
  Tensors frozen_;
};

}  // namespace

std::unique_ptr<Method> make_layer_freezing() {
  return std::make_unique<LayerFreezing>();
}

}  // namespace precast::recipes
