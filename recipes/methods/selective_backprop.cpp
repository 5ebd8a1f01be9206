#include "recipes/methods/selective_backprop.h"

#include <ATen/ops/argsort.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/api/run_facts.h"
#include "framework/api/step_strategy.h"
#include "framework/api/train_plan.h"
#include "framework/core/error.h"
#include "framework/core/rng.h"
#include "recipes/methods/batch_inputs.h"
#include "recipes/methods/no_gradient_hooks.h"

namespace precast::recipes {
namespace {

class SelectiveBackprop final : public MethodWithoutGradientHooks, private StepStrategy {
 public:
  void options(Schema& schema) override {
    schema.add("start", &start_, "fraction of the run before the first selection").min(0).max(1);
    schema.add("end", &end_, "fraction of the run at which selection ends").min(0).max(1);
    schema.add("keep", &keep_, "fraction of each batch that is trained on").above(0).max(1);
    schema
        .add("interrupt", &interrupt_,
             "N: every N-th step trains on the whole batch; 0: no step does")
        .min(0);
    schema
        .add("scale_factor", &scale_factor_,
             "side of the images used for the selection, as a fraction of the full side")
        .above(0)
        .max(1);
  }

  void configure(TrainPlan& plan) const override {
    if (start_ > end_) {
      throw ConfigError(fmt::format("method selective_backprop: expected start <= end, got {} > {}",
                                    start_, end_));
    }
    if (plan.micro_batches > 1) {
      throw ConfigError(fmt::format(
          "method selective_backprop: expected training.micro_batches 1, got {}. The method cannot "
          "divide the samples that it keeps into micro-batches",
          plan.micro_batches));
    }
    if (plan.model.targets == TargetKind::class_mask && scale_factor_ < 1) {
      throw ConfigError(fmt::format(
          "method selective_backprop: expected scale_factor 1 with masks, got {}. The outputs for "
          "smaller images would not have the size of the masks",
          scale_factor_));
    }
  }

  void on_run(const RunFacts& run) override { run_ = run; }
  void on_batch(Batch& /*batch*/, std::int64_t global_step) override { step_ = global_step; }
  [[nodiscard]] std::int64_t smallest_side(std::int64_t size_px) const override {
    return keep_ < 1 && start_ < end_ ? small_side(size_px) : size_px;
  }
  [[nodiscard]] bool varies_between_steps() const override {
    const bool selects = keep_ < 1 && start_ < end_ && interrupt_ != 1;
    return selects && (start_ > 0 || end_ < 1 || interrupt_ > 0);
  }
  [[nodiscard]] StepStrategy* step_strategy() override { return this; }

 private:
  [[nodiscard]] at::Tensor run(Batch& batch, StepPasses& passes) override {
    if (!selects()) return passes.forward_backward(batch, /*last=*/true);
    Batch selected = select(batch, passes);
    return passes.forward_backward(selected, /*last=*/true);
  }

  [[nodiscard]] bool selects() const {
    const double done = run_.share_done(step_);
    const bool plain = interrupt_ > 0 && (step_ % run_.steps_per_epoch + 1) % interrupt_ == 0;
    return keep_ < 1 && done >= start_ && done < end_ && !plain;
  }

  [[nodiscard]] Batch select(const Batch& batch, StepPasses& passes) const {
    const Batch small_batch = with_small_images(batch);
    const at::Tensor losses =
        passes.loss().per_sample(passes.forward(small_batch), small_batch).detach();
    const at::Device device = losses.device();
    return batch.index_select(losses.argsort().index_select(0, draw(batch.size(), device)));
  }

  /// Returns the batch with smaller images; inputs that are not images are unchanged.
  [[nodiscard]] Batch with_small_images(const Batch& batch) const {
    Batch made = batch;
    if (scale_factor_ == 1) return made;
    for (const std::size_t i : input_fields(batch)) {
      auto& [name, images] = made.fields.at(i);
      if (!is_image(images)) continue;
      if (!images.is_floating_point()) {
        throw ConfigError(
            fmt::format("method selective_backprop: expected images of a floating-point type, got "
                        "'{}' of type {} (data.inputs)",
                        name, c10::toString(images.scalar_type())));
      }
      images =
          at::upsample_bilinear2d(images, {small_side(images.size(2)), small_side(images.size(3))},
                                  /*align_corners=*/false, scale_factor_, scale_factor_);
    }
    return made;
  }

  [[nodiscard]] std::int64_t small_side(std::int64_t side) const {
    // Rounded down exactly like torch's interpolate(), without the tolerance of floor_share().
    const double exact = static_cast<double>(side) * scale_factor_;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(exact));
  }

  /// Draws max(1, int(keep * samples)) distinct positions in the ascending list of the `samples`
  /// losses, and returns them on the device. The weight of a position is quantile^(1 / keep - 1),
  /// so larger losses are drawn more often. With u uniform in (0, 1], choosing the positions with
  /// the largest log(u) / weight is equivalent to drawing them one after the other, without
  /// replacement, with these weights (Efraimidis & Spirakis, "Weighted random sampling with a
  /// reservoir", 2006).
  [[nodiscard]] at::Tensor draw(std::int64_t samples, at::Device device) const {
    RandomStream random(derived_seed(run_.seed, "selective_backprop"),
                        static_cast<std::uint32_t>(run_.rank), static_cast<std::uint64_t>(step_),
                        RandomUse::transform);
    std::vector<std::pair<double, std::int64_t>> keys;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double quantile = (static_cast<double>(i) + 0.5) / static_cast<double>(samples);
      keys.emplace_back(std::log(1 - random.uniform()) / std::pow(quantile, 1 / keep_ - 1), i);
    }
    std::ranges::sort(keys, std::greater<>());
    // Rounded as in Composer, int(keep * N), and not with floor_share(): for keep = 0.29, 28 of 100
    // samples. The minimum is one sample, because a step without samples would have no loss.
    const auto count =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(keep_ * static_cast<double>(samples)));
    // From page-locked memory, so that nothing waits for the device.
    const at::Tensor positions =
        at::empty({count}, at::TensorOptions(at::kLong).pinned_memory(!device.is_cpu()));
    for (std::int64_t i = 0; i < count; ++i)
      positions.mutable_data_ptr<std::int64_t>()[i] = keys[static_cast<std::size_t>(i)].second;
    return positions.to(device, /*non_blocking=*/true);
  }

  double start_ = 0.5;
  double end_ = 0.9;
  double keep_ = 0.5;
  std::int64_t interrupt_ = 2;
  double scale_factor_ = 1;
  RunFacts run_;
  std::int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<Method> make_selective_backprop() {
  return std::make_unique<SelectiveBackprop>();
}

}  // namespace precast::recipes
