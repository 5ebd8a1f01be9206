#pragma once

#include <memory>

#include "framework/api/loss.h"

namespace precast::recipes {

struct HuberOptions {
  /// Above 0: errors up to it count by their square, larger ones by their size.
  double delta = 1;

  void options(Schema& schema);
};

/// Losses of regression: the mean over all values of the first target, of any type; see
/// TargetKind::values for the shapes. Computed in float32 whatever the outputs' type. The calls
/// throw std::logic_error for other shapes.
///
/// The squared error, as torch.nn.MSELoss.
[[nodiscard]] std::unique_ptr<Loss> make_mse();
/// The absolute error, as torch.nn.L1Loss.
[[nodiscard]] std::unique_ptr<Loss> make_l1();
/// As torch.nn.HuberLoss (Huber 1964).
[[nodiscard]] std::unique_ptr<Loss> make_huber(const HuberOptions& options);

}  // namespace precast::recipes
