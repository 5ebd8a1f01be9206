#include "recipes/methods/progressive_resize.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

constexpr double kGranularityPx = 32;
constexpr double kMaxPx = 8192;

class ProgressiveResize final : public MethodWithoutGradientHooks {
 public:
  void options(Schema& schema) override {
    schema.add("min_res", &min_res_, "side of the images of the first epochs, px")
        .min(1)
        .max(kMaxPx);
    schema.add("max_res", &max_res_, "side of the images of the last epochs, px")
        .min(1)
        .max(kMaxPx);
    schema.add("start_ramp", &start_ramp_, "last epoch at min_res, counted from 0").min(0);
    schema
        .add("end_ramp", &end_ramp_,
             "first epoch at max_res, counted from 0 (at min_res if it equals start_ramp)")
        .min(0);
  }

  void configure(TrainPlan& plan) const override {
    if (min_res_ > max_res_ || start_ramp_ > end_ramp_) {
      throw ConfigError(fmt::format(
          "method progressive_resize: expected min_res <= max_res and start_ramp <= end_ramp, "
          "got {} and {} px, epochs {} and {}",
          min_res_, max_res_, start_ramp_, end_ramp_));
    }
    plan.image_size_px.clear();
    for (std::int64_t epoch = 0; epoch < plan.epochs; ++epoch)
      plan.image_size_px.push_back(image_size_px(epoch));
  }

 private:
  [[nodiscard]] std::int64_t image_size_px(std::int64_t epoch) const {
    if (epoch <= start_ramp_) return min_res_;
    if (epoch >= end_ramp_) return max_res_;
    const auto slope =
        static_cast<double>(max_res_ - min_res_) / static_cast<double>(end_ramp_ - start_ramp_);
    const double size =
        slope * static_cast<double>(epoch - start_ramp_) + static_cast<double>(min_res_);
    // nearbyint rounds half to even, as numpy.round does.
    const auto rounded =
        static_cast<std::int64_t>(std::nearbyint(size / kGranularityPx) * kGranularityPx);
    return rounded > 0 ? rounded : min_res_;
  }

  std::int64_t min_res_ = 160;
  std::int64_t max_res_ = 160;
  std::int64_t start_ramp_ = 0;
  std::int64_t end_ramp_ = 0;
};

}  // namespace

std::unique_ptr<Method> make_progressive_resize() {
  return std::make_unique<ProgressiveResize>();
}

}  // namespace precast::recipes
