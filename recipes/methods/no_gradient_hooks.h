#pragma once

#include <optional>

#include "framework/api/method.h"

namespace precast::recipes {

/// The base class of methods that have neither on_backward() nor on_gradients(), and read no
/// gradients in on_step_end(). A CUDA graph of the whole step may therefore contain their hooks,
/// and optimisers may unscale and clip the gradients themselves. The step_strategy() of such a
/// method may read the gradients of the passes that it runs.
class MethodWithoutGradientHooks : public Method {
 public:
  void on_backward(Model& /*model*/) final {}
  void on_gradients(Model& /*model*/) final {}
  [[nodiscard]] std::optional<double> gradient_bound() const final { return kUnbounded; }
  [[nodiscard]] bool records_hooks(int /*world*/) const final { return true; }
};

}  // namespace precast::recipes
