#include "recipes/methods/bce_loss.h"

#include <fmt/format.h>

#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "recipes/methods/loss_option.h"
#include "recipes/methods/model_params.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

/// TrainPlan's default, for recipes that do not set training.loss.
constexpr const char* kDefaultLoss = "cross_entropy";

class BceLoss final : public MethodWithoutGradientHooks {
 public:
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::class_index;
  }
  void options(Schema& schema) override {
    schema.add("sum_classes", &sum_classes_, "sum over the classes instead of averaging");
    schema
        .add("target_threshold", &target_threshold_,
             "targets above it count as 1, others as 0; -1: targets are unchanged")
        .min(-1)
        .below(1);
    schema.add("log_bias", &log_bias_, "the last layer's biases start at -log(classes)");
  }
  void configure(TrainPlan& plan) const override {
    if (plan.loss.name != kDefaultLoss && plan.loss.name != "bce") {
      throw ConfigError(fmt::format("method bce_loss: expected training.loss {} or bce, got {}",
                                    kDefaultLoss, plan.loss.name));
    }
    plan.loss.name = "bce";
    set_loss_option(plan, "bce_loss", "sum_classes", sum_classes_);
    set_loss_option(plan, "bce_loss", "target_threshold", target_threshold_);
    if (log_bias_) set_model_params(plan, "bce_loss", "log_bias", {{"", "true"}});
  }

 private:
  bool sum_classes_ = false;
  double target_threshold_ = -1;
  bool log_bias_ = false;
};

}  // namespace

std::unique_ptr<Method> make_bce_loss() {
  return std::make_unique<BceLoss>();
}

}  // namespace precast::recipes
