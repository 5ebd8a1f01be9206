#include "recipes/optim/sgd.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "framework/core/error.h"

namespace precast::recipes {
namespace {

/// Parameters that decay alike. The fused kernel reads them, their gradients and velocities as flat
/// memory, so all three need one layout.
struct Group {
  double weight_decay = 0;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> velocities;
};

/// Same order of elements in memory. Strides of sides of length 1 mean nothing.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  for (std::int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

at::Tensor with_layout_of(const at::Tensor& parameter, const at::Tensor& gradient) {
  if (same_layout(parameter, gradient)) return gradient;
  return at::empty_like(parameter).copy_(gradient);
}

bool decays(const NamedTensor& parameter, bool legacy) {
  return legacy ? parameter.name.find("bn") == std::string::npos : parameter.tensor.dim() >= 2;
}

class Sgd final : public Optimizer {
 public:
  Sgd(const std::vector<NamedTensor>& parameters, const OptimizerOptions& options)
      : momentum_(options.momentum), nesterov_(options.nesterov) {
    groups_[1].weight_decay = options.weight_decay;
    for (const NamedTensor& parameter : parameters) {
      require(parameter.tensor.is_non_overlapping_and_dense(),
              "a parameter's elements fill its memory");
      Group& group = groups_[decays(parameter, options.decay_groups == "legacy") ? 1 : 0];
      group.parameters.push_back(parameter.tensor);
      if (momentum_ != 0) group.velocities.push_back(at::zeros_like(parameter.tensor));
    }
  }

  void step(double lr, const std::optional<Scaled>& scaled) override {
    const at::NoGradGuard no_grad;
    for (const Group& group : groups_) step_group(group, lr, scaled);
  }

  void zero_grad() override {
    for (const Group& group : groups_) {
      for (const at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
    }
  }

 private:
  void step_group(const Group& group, double lr, const std::optional<Scaled>& scaled) {
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const at::Tensor& parameter = group.parameters[i];
      if (!parameter.grad().defined()) continue;
      parameters_.push_back(parameter);
      gradients_.push_back(with_layout_of(parameter, parameter.grad()));
      if (momentum_ != 0) velocities_.push_back(group.velocities[i]);
    }
    if (parameters_.empty()) return;
    const std::optional<at::Tensor> found_inf =
        scaled ? std::optional<at::Tensor>(scaled->found_inf) : std::nullopt;
    // Velocities start at 0, and 0 * momentum + g is g: no parameter needs a first step of its own,
    // which a skipped step would have to undo.
    at::_fused_sgd_(parameters_, gradients_, velocities_, group.weight_decay, momentum_, lr,
                    /*dampening=*/0, nesterov_, /*maximize=*/false, /*is_first_step=*/false,
                    /*grad_scale=*/{}, found_inf);
    // Not kept alive past zero_grad().
    parameters_.clear();
    gradients_.clear();
    velocities_.clear();
  }

  double momentum_;
  bool nesterov_;
  /// Without and with weight decay.
  Group groups_[2];
  /// What one call of the kernel takes; kept for their capacity.
  std::vector<at::Tensor> parameters_, gradients_, velocities_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(const std::vector<NamedTensor>& parameters,
                                    const OptimizerOptions& options) {
  if (options.momentum < 0 || options.weight_decay < 0) {
    throw ConfigError(
        fmt::format("optimizer sgd: expected momentum >= 0 and weight_decay >= 0, got momentum {}, "
                    "weight_decay {}",
                    options.momentum, options.weight_decay));
  }
  if (options.nesterov && options.momentum == 0) {
    throw ConfigError(
        "optimizer sgd: expected momentum > 0 with nesterov, got 0. Set momentum, or nesterov to "
        "false.");
  }
  if (options.decay_groups != "legacy" && options.decay_groups != "clean") {
    throw ConfigError(fmt::format(
        "optimizer sgd: expected decay_groups 'legacy' or 'clean', got '{}'. legacy: all whose "
        "name does not contain 'bn' decay; clean: tensors of two or more dimensions do.",
        options.decay_groups));
  }
  return std::make_unique<Sgd>(parameters, options);
}

}  // namespace precast::recipes
