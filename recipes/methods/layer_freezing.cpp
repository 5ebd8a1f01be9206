#include "recipes/methods/layer_freezing.h"

#include <string>

#include "framework/api/model.h"
#include "framework/api/run_facts.h"

namespace precast::recipes {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Parameters by layer, in the model's order.
std::vector<Tensors> layers_of(const Model& model) {
  std::vector<Tensors> layers;
  std::string last;
  for (const NamedTensor& parameter : model.parameters()) {
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
    schema.add("freeze_level", &freeze_level_, "fraction of the layers frozen at the end")
        .min(0)
        .max(1);
  }

  void on_run(const RunFacts& run) override { run_ = run; }

  void on_epoch_begin(std::int64_t epoch, Model& model) override {
    // An epoch may be repeated after a checkpoint was restored.
    for (const at::Tensor& parameter : frozen_) parameter.requires_grad_(true);
    frozen_.clear();
    const std::vector<Tensors> layers = layers_of(model);
    // Rounded down as in Composer: slightly less than a full number of layers means one layer
    // fewer.
    const auto depth =
        static_cast<std::size_t>(share(epoch) * static_cast<double>(layers.size() - 1));
    for (std::size_t i = 0; i < depth; ++i) {
      for (const at::Tensor& parameter : layers[i]) {
        // Parameters that training.freeze froze must not be unfrozen by this method.
        if (!parameter.requires_grad()) continue;
        frozen_.push_back(parameter);
        // With several ranks the reducer waits for every gradient that is registered with it;
        // on_backward() drops these.
        if (run_.world == 1) parameter.requires_grad_(false);
      }
    }
  }

  /// With several ranks, the gradients that on_backward() drops change from epoch to epoch.
  [[nodiscard]] bool records_hooks(int world) const override { return world == 1; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }
  void on_backward(Model& /*model*/) override {
    for (const at::Tensor& parameter : frozen_) parameter.mutable_grad().reset();
  }

 private:
  /// The share of the layers that is frozen in `epoch`.
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
