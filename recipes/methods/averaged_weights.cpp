#include "recipes/methods/averaged_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/_foreach_lerp.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/isfinite.h>

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

/// Copies the averages into the weights; the destructor restores the weights.
class Swap final : public Method::EvalGuard {
 public:
  Swap(std::string method, Tensors weights, const Tensors& averages)
      : method_(std::move(method)), weights_(std::move(weights)), saved_(copies_of(weights_)) {
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
      // This happens only if the device has failed; all later calls then fail, too.
      log_warning("method {}: the training weights could not be restored after the evaluation: {}",
                  method_, failure.what());
    }
  }

 private:
  std::string method_;
  Tensors weights_;
  Tensors saved_;
};

}  // namespace

void AveragingMethod::on_train_begin(Model& model) {
  updates_ = 0;
  averages_ = copies_of(floating_state(model));
  names_.clear();
  copied_.clear();
  for (const NamedTensor& entry : named_floating_state(model)) {
    if (!at::isfinite(entry.tensor).all().item<bool>()) copied_.push_back(names_.size());
    names_.push_back(entry.name + "." + name_);
  }
}

void AveragingMethod::copy(const Model& model) {
  const at::NoGradGuard no_grad;
  at::_foreach_copy_(averages_, floating_state(model));
}

void AveragingMethod::update_averages(const Model& model, double share) {
  const at::NoGradGuard no_grad;
  const Tensors state = floating_state(model);
  at::_foreach_lerp_(averages_, state, share);
  // The average of two equal infinities is NaN.
  for (const std::size_t i : copied_) averages_[i].copy_(state[i]);
}

State AveragingMethod::state() const {
  State state{{}, {{kUpdates, updates_}}};
  for (std::size_t i = 0; i < averages_.size(); ++i)
    state.tensors.push_back({names_[i], averages_[i]});
  return state;
}

void AveragingMethod::restore(const std::map<std::string, std::int64_t>& counters) {
  updates_ = counters.at(kUpdates);
}

std::unique_ptr<Method::EvalGuard> AveragingMethod::eval_scope(Model& model) {
  if (!evaluates_averages()) return nullptr;
  return std::make_unique<Swap>(name_, floating_state(model), averages_);
}

}  // namespace precast::recipes
