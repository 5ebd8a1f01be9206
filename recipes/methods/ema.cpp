#include "recipes/methods/ema.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/empty_like.h>

#include "framework/api/model.h"
#include "framework/core/log.h"

namespace precast::recipes {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr const char* kUpdates = "updates";

std::vector<NamedTensor> named_floating_state(const Model& model) {
  std::vector<NamedTensor> entries;
  for (const NamedTensor& entry : model.state()) {
    if (entry.tensor.is_floating_point()) entries.push_back({entry.name, entry.tensor.detach()});
  }
  return entries;
}

Tensors floating_state(const Model& model) {
  Tensors tensors;
  for (NamedTensor& entry : named_floating_state(model)) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

Tensors copies_of(const Tensors& tensors) {
  const at::NoGradGuard no_grad;
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(at::empty_like(tensor));
  at::_foreach_copy_(copies, tensors);
  return copies;
}

/// Puts the averages in and, when it goes, the weights back. Values are copied, so that what holds
/// the weights by address (an optimiser, a captured graph) keeps working.
class Swap final : public Method::EvalGuard {
 public:
  Swap(Tensors weights, const Tensors& averages)
      : weights_(std::move(weights)), saved_(copies_of(weights_)) {
    const at::NoGradGuard no_grad;
    at::_foreach_copy_(weights_, averages);
  }
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;
  ~Swap() override {
    try {
      const at::NoGradGuard no_grad;
      at::_foreach_copy_(weights_, saved_);
    } catch (const std::exception& failure) {
      // Only a broken device gets here, and it fails every later call as well.
      log_warning("method ema: the weights could not be put back: {}", failure.what());
    }
  }

 private:
  Tensors weights_;
  Tensors saved_;
};

class Ema final : public Method {
 public:
  void options(Schema& schema) override {
    schema.add("decay", &decay_, "weight of the old average in the new one").min(0).below(1);
  }

  void on_train_begin(Model& model) override {
    averages_ = copies_of(floating_state(model));
    names_.clear();
    for (const NamedTensor& entry : named_floating_state(model))
      names_.push_back(entry.name + ".ema");
    updates_ = 0;
  }

  void on_step_end(Model& model, std::int64_t /*global_step*/) override {
    const at::NoGradGuard no_grad;
    const Tensors weights = floating_state(model);
    if (updates_ == 0) {
      at::_foreach_copy_(averages_, weights);
    } else {
      at::_foreach_lerp_(averages_, weights, 1 - decay_);
    }
    ++updates_;
  }

  [[nodiscard]] State state() const override {
    State state;
    for (std::size_t i = 0; i < averages_.size(); ++i)
      state.tensors.push_back({names_[i], averages_[i]});
    state.counters[kUpdates] = updates_;
    return state;
  }

  void restore(const std::map<std::string, std::int64_t>& counters) override {
    updates_ = counters.at(kUpdates);
  }

  [[nodiscard]] std::unique_ptr<EvalGuard> eval_scope(Model& model) override {
    if (updates_ == 0) return nullptr;
    return std::make_unique<Swap>(floating_state(model), averages_);
  }

 private:
  double decay_ = 0.999;
  /// One for each floating-point tensor of the model's state, in its order.
  Tensors averages_;
  std::vector<std::string> names_;
  /// Steps that are in the averages.
  std::int64_t updates_ = 0;
};

}  // namespace

std::unique_ptr<Method> make_ema() {
  return std::make_unique<Ema>();
}

}  // namespace precast::recipes
