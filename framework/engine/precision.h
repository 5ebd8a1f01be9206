#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/api/stateful.h"
#include "framework/api/train_plan.h"
#include "framework/core/export.h"

namespace precast::engine {

/// Turns autocast on for one device type during its lifetime: matrix products and convolutions then
/// run in fp16 or bf16, as with Python's torch.autocast. Does nothing for fp32. Applies only to the
/// thread that created it; scopes may be nested.
class PRECAST_API AutocastScope {
 public:
  AutocastScope(at::Device device, Precision precision);
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  ~AutocastScope();

 private:
  at::DeviceType device_;
  bool active_;
  bool was_enabled_ = false;
};

/// Scales the loss so that small fp16 gradients do not underflow, and skips steps that overflow,
/// like Python's torch.amp.GradScaler (growth 2, backoff 0.5, interval 2000), but without waiting
/// for the device.
class PRECAST_API GradScaler final : public Stateful {
 public:
  explicit GradScaler(at::Device device);
  [[nodiscard]] State state() const override;
  [[nodiscard]] at::Tensor scale(const at::Tensor& loss) const;
  /// The factor by which scale() multiplies the loss, and therefore the gradients: scalar float32
  /// on the device.
  [[nodiscard]] const at::Tensor& factor() const { return scale_; }
  /// Scalar bool on the device: whether the scale has fallen below 1. If so, the scale cannot be
  /// the cause of infinite gradients.
  [[nodiscard]] at::Tensor collapsed() const;
  /// Divides the gradients by the scale in place.
  /// @return scalar float32: 1 if any gradient is Inf or NaN, otherwise 0.
  [[nodiscard]] at::Tensor unscale(const std::vector<at::Tensor>& gradients);
  /// Adapts the scale after a step. @param found_inf 1 if any gradient was Inf or NaN, as returned
  /// by unscale().
  void update(const at::Tensor& found_inf);

 private:
  at::Tensor scale_;
  at::Tensor growth_tracker_;
};

}  // namespace precast::engine
