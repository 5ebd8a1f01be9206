#include "recipes/methods/batch_resize.h"

#include <ATen/ops/upsample_nearest2d.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/api/batch.h"
#include "framework/api/run_facts.h"
#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "recipes/methods/batch_inputs.h"
#include "recipes/methods/no_gradient_hooks.h"
#include "recipes/methods/run_shares.h"

namespace precast::recipes {
namespace {

class BatchResize final : public MethodWithoutGradientHooks {
 public:
  /// Rejects masks, because they would no longer have the size of their images.
  [[nodiscard]] bool accepts(TargetKind kind) const override {
    return kind != TargetKind::class_mask;
  }
  void options(Schema& schema) override {
    schema
        .add("mode", &mode_,
             "how images become smaller; resize: nearest pixel; crop: a random part, the same for "
             "the whole batch")
        .choices({"resize", "crop"});
    schema
        .add("initial_scale", &initial_scale_, "side at the start, as a fraction of the full side")
        .above(0)
        .max(1);
    schema.add("delay_fraction", &delay_, "fraction of the run before images start to grow")
        .min(0)
        .max(1);
    schema
        .add("finetune_fraction", &finetune_,
             "fraction of the run, at its end, in which images have full size")
        .min(0)
        .max(1);
    schema
        .add("size_increment", &increment_, "widths are rounded to multiples of this number of px")
        .min(1);
  }

  void configure(TrainPlan& /*plan*/) const override {
    if (delay_ + finetune_ <= 1) return;
    throw ConfigError(
        fmt::format("method batch_resize: expected delay_fraction + finetune_fraction <= 1, got {} "
                    "+ {}",
                    delay_, finetune_));
  }

  void on_run(const RunFacts& run) override { run_ = run; }
  [[nodiscard]] std::int64_t smallest_side(std::int64_t size_px) const override {
    return side(size_px, scale(/*done=*/0));
  }

  void on_batch(Batch& batch, std::int64_t global_step) override {
    for (const std::size_t i : input_fields(batch)) {
      at::Tensor& input = batch.fields.at(i).tensor;
      if (is_image(input)) make_smaller(input, global_step);
    }
  }
  [[nodiscard]] bool varies_between_steps() const override {
    return initial_scale_ < 1 && delay_ < 1;
  }

 private:
  void make_smaller(at::Tensor& images, std::int64_t global_step) const {
    const std::int64_t width = images.size(3);
    const std::int64_t to = side(width, scale(run_.share_done(global_step)));
    if (to == width) return;
    const double factor = static_cast<double>(to) / static_cast<double>(width);
    const std::int64_t height = std::max<std::int64_t>(1, floor_share(factor, images.size(2)));
    images = mode_ == "resize" ? at::upsample_nearest2d(images, {height, to}, factor, factor)
                               : cropped(images, height, to, global_step);
  }

  /// The fraction of the full side after the fraction `done` of the run.
  [[nodiscard]] double scale(double done) const {
    if (done < delay_) return initial_scale_;
    const double ramp = 1 - finetune_ - delay_;
    const double share = ramp > 0 ? std::min((done - delay_) / ramp, 1.0) : 1;
    return initial_scale_ + (1 - initial_scale_) * share;
  }

  [[nodiscard]] std::int64_t side(std::int64_t full_side, double scale) const {
    if (scale >= 1) return full_side;  // also if it is not a multiple of the increment
    const auto increment = static_cast<double>(increment_);
    // nearbyint rounds half to even, as Python's round does.
    const auto rounded = static_cast<std::int64_t>(
        std::nearbyint(static_cast<double>(full_side) * scale / increment) * increment);
    return std::clamp(rounded, std::min(increment_, full_side), full_side);
  }

  [[nodiscard]] at::Tensor cropped(const at::Tensor& images, std::int64_t height,
                                   std::int64_t width, std::int64_t global_step) const {
    RandomStream random(derived_seed(run_.seed, "batch_resize"),
                        static_cast<std::uint32_t>(run_.rank),
                        static_cast<std::uint64_t>(global_step), RandomUse::transform);
    const auto random_offset = [&](std::int64_t from, std::int64_t to) {
      return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(from - to) + 1));
    };
    const std::int64_t top = random_offset(images.size(2), height);
    const std::int64_t left = random_offset(images.size(3), width);
    return images.narrow(2, top, height)
        .narrow(3, left, width)
        .contiguous(images.suggest_memory_format());
  }

  std::string mode_ = "resize";
  double initial_scale_ = 0.5;
  double delay_ = 0.5;
  double finetune_ = 0.2;
  std::int64_t increment_ = 4;
  RunFacts run_;
};

}  // namespace

std::unique_ptr<Method> make_batch_resize() {
  return std::make_unique<BatchResize>();
}

}  // namespace precast::recipes
