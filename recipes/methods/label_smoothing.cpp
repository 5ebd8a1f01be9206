#include "recipes/methods/label_smoothing.h"

#include "framework/api/train_plan.h"
#include "recipes/methods/loss_option.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class LabelSmoothing final : public MethodWithoutGradientHooks {
 public:
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind == TargetKind::class_index;
  }
  void options(Schema& schema) override {
    schema
        .add("smoothing", &smoothing_,
             "fraction of the probability that is spread over all classes")
        .min(0)
        .below(1);
  }
  void configure(TrainPlan& plan) const override {
    set_loss_option(plan, "label_smoothing", "label_smoothing", smoothing_);
  }

 private:
  double smoothing_ = 0.1;
};

}  // namespace

std::unique_ptr<Method> make_label_smoothing() {
  return std::make_unique<LabelSmoothing>();
}

}  // namespace precast::recipes
