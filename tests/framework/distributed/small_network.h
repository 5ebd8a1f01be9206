#pragma once

#include <vector>

#include "framework/api/model.h"

namespace precast::test {

/// Two linear layers and random samples: small enough for a test, with operators that give bitwise
/// identical results in every run, even on a GPU. All instances start with the same weights and
/// samples.
class SmallNetwork {
 public:
  static constexpr std::int64_t kSamples = 16;

  explicit SmallNetwork(at::Device device);
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// The mean loss of the samples from `first` to `first` + `count` - 1: a scalar.
  [[nodiscard]] at::Tensor loss(std::int64_t first = 0, std::int64_t count = kSamples) const;
  /// Removes the last step's gradients, as the trainer does.
  void clear_gradients() const;
  /// Gradients of all parameters, one after the other, on the CPU: [elements] float32.
  [[nodiscard]] at::Tensor gradients() const;
  /// The parameters in the same form.
  [[nodiscard]] at::Tensor weights() const;
  void sgd_step(double lr) const;

 private:
  at::Tensor samples_, targets_;
  std::vector<NamedTensor> parameters_;
};

}  // namespace precast::test
