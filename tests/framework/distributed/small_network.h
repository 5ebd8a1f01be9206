#pragma once

#include <vector>

#include "framework/api/model.h"

namespace precast::test {

/// Two linear layers on made-up samples: small enough for a test, with operators that give the same
/// bits each time, on a GPU too. All of it is the same wherever it is made.
class SmallNetwork {
 public:
  static constexpr std::int64_t kSamples = 16;

  explicit SmallNetwork(at::Device device);
  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
  /// The loss of samples first to first + count - 1, a mean: [].
  [[nodiscard]] at::Tensor loss(std::int64_t first = 0, std::int64_t count = kSamples) const;
  /// Takes the last step's gradients away, as the trainer does.
  void forget_gradients() const;
  /// Gradients of all parameters, one after the other, on the CPU: [elements] float32.
  [[nodiscard]] at::Tensor gradients() const;
  /// The same of the parameters themselves.
  [[nodiscard]] at::Tensor weights() const;
  void descend(double lr) const;

 private:
  at::Tensor samples_, targets_;
  std::vector<NamedTensor> parameters_;
};

}  // namespace precast::test
