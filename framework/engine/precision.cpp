#include "framework/engine/precision.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/zeros.h>

namespace precast::engine {
namespace {

constexpr double kInitialScale = 65536;
constexpr double kGrowthFactor = 2;
constexpr double kBackoffFactor = 0.5;
constexpr std::int64_t kGrowthInterval = 2000;

}  // namespace

AutocastScope::AutocastScope(at::Device device, Precision precision)
    : device_(device.type()), active_(precision != Precision::fp32) {
  if (!active_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::set_autocast_dtype(device_,
                                   precision == Precision::fp16 ? at::kHalf : at::kBFloat16);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  // The outermost scope clears autocast's cache of cast weights, which would otherwise grow.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, was_enabled_);
}

GradScaler::GradScaler(at::Device device)
    : scale_(at::full({}, kInitialScale, at::device(device).dtype(at::kFloat))),
      growth_tracker_(at::zeros({}, at::device(device).dtype(at::kInt))) {}

State GradScaler::state() const {
  return {.tensors = {{"scale", scale_}, {"growth_tracker", growth_tracker_}}, .counters = {}};
}

at::Tensor GradScaler::scale(const at::Tensor& loss) const {
  return loss * scale_;
}

at::Tensor GradScaler::collapsed() const {
  return scale_ < 1;
}

at::Tensor GradScaler::unscale(const std::vector<at::Tensor>& gradients) {
  at::Tensor found_inf = at::zeros({}, scale_.options());
  at::_amp_foreach_non_finite_check_and_unscale_(gradients, found_inf, at::reciprocal(scale_));
  return found_inf;
}

void GradScaler::update(const at::Tensor& found_inf) {
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf, kGrowthFactor, kBackoffFactor,
                         kGrowthInterval);
}

}  // namespace precast::engine
