#pragma once

#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

struct HuberOptions {
  /// Above 0: the error up to which the loss is quadratic; it is linear for larger errors.
  double delta = 1;

  void options(Schema& schema);
};

/// Losses for regression: the mean over all values of the first target, which may have any type.
/// TargetKind::values describes the shapes. Computed in float32 whatever the dtype of the outputs.
/// Calls throw std::logic_error for other shapes.
///
/// The squared error, like torch.nn.MSELoss.
[[nodiscard]] std::unique_ptr<Loss> make_mse();
/// The absolute error, like torch.nn.L1Loss.
[[nodiscard]] std::unique_ptr<Loss> make_l1();
/// The Huber loss, like torch.nn.HuberLoss (Huber 1964).
[[nodiscard]] std::unique_ptr<Loss> make_huber(const HuberOptions& options);

}  // namespace precast::recipes
