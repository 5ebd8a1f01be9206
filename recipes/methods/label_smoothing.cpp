#include "recipes/methods/label_smoothing.h"

#include "framework/api/train_plan.h"
#include "recipes/methods/loss_option.h"

namespace precast::recipes {
namespace {

class LabelSmoothing final : public Method {
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
  [[nodiscard]] bool records_hooks(int /*world*/) const override { return true; }
  [[nodiscard]] std::optional<double> gradient_bound() const override { return kUnbounded; }

 private:
  double smoothing_ = 0.1;
};

}  // namespace

std::unique_ptr<Method> make_label_smoothing() {
  return std::make_unique<LabelSmoothing>();
}

}  // namespace precast::recipes
